#include <gtest/gtest.h>

#include "base/text.h"

namespace jouleprof {
namespace {

TEST(Demangle, WritesNamesAsPeopleDo) {
  EXPECT_EQ(demangle("_Z4copyIfEvPT_"), "void copy<float>(float*)");
  EXPECT_EQ(demangle("sgemm_128x64"), "sgemm_128x64");
  EXPECT_EQ(demangle("_Znot a name"), "_Znot a name");
  EXPECT_EQ(demangle(""), "");
}

}  // namespace
}  // namespace jouleprof
