#include "session/hub/window_names.h"

#include <gtest/gtest.h>

namespace jouleprof::session {
namespace {

TEST(NameTable, TheSameTextHasTheSameNumber) {
  NameTable names;
  EXPECT_EQ(names.number(""), 0U);
  EXPECT_EQ(names.number("epoch"), 1U);
  EXPECT_EQ(names.number("step"), 2U);
  EXPECT_EQ(names.number("epoch"), 1U);
  EXPECT_EQ(names.text(2), "step");
  EXPECT_EQ(names.text(9), "");
  EXPECT_FALSE(names.is_full());
}

TEST(NameTable, IsBoundedAndSaysSo) {
  NameTable names;
  for (std::size_t i = 1; i < NameTable::kMost; ++i) {
    EXPECT_EQ(names.number("step " + std::to_string(i)), i);
  }
  EXPECT_FALSE(names.is_full());
  EXPECT_EQ(names.number("one more"), 0U);
  EXPECT_TRUE(names.is_full());
  EXPECT_EQ(names.size(), NameTable::kMost);
  EXPECT_EQ(names.number("step 7"), 7U);
}

TEST(NameTable, LongNamesAreBoundedToo) {
  NameTable names;
  EXPECT_EQ(names.number(std::string(NameTable::kMostBytes, 'x')), 1U);
  EXPECT_EQ(names.number("y"), 0U);
  EXPECT_TRUE(names.is_full());
}

}  // namespace
}  // namespace jouleprof::session
