#include <gtest/gtest.h>

#include "base/text.h"

namespace jouleprof {
namespace {

TEST(Decimal, IsExact) {
  EXPECT_EQ(scaled_integer("1795219288.380954", 9), 1795219288380954000);
  EXPECT_EQ(scaled_integer("-0.0000000015", 9), -2);
  EXPECT_EQ(scaled_integer("7.", 3), 7000);
  EXPECT_EQ(scaled_integer(".5", 0), 1);
  EXPECT_EQ(scaled_integer("9223372036854775807", 0), 9223372036854775807);
  for (const char* bad : {"", "-", ".", "9223372036854775808", "1e5", "0x1", "1 2", "1,5", "1.2x",
                          "9223372036854775807.5", "99999999999999999999", "nan"}) {
    EXPECT_FALSE(scaled_integer(bad, 0)) << bad;
  }
}

}  // namespace
}  // namespace jouleprof
