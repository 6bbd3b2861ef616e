#include "importers/launch_limit.h"

#include <gtest/gtest.h>

namespace jouleprof::importers {
namespace {

using namespace std::chrono_literals;

TEST(LaunchLimit, AnHourTogetherAndASecondForEach) {
  LaunchLimit limit;
  for (int i = 0; i < 3600; ++i) EXPECT_TRUE(limit.add(2s));
  EXPECT_TRUE(limit.add(1s));
  EXPECT_FALSE(limit.add(2s));
  EXPECT_EQ(limit.message(), "3602 launches run for 2.0 h: check the unit of the times");
}

TEST(LaunchLimit, OneAmongMany) {
  LaunchLimit limit;
  for (int i = 0; i < 100'000; ++i) EXPECT_TRUE(limit.add(1ms));
  EXPECT_TRUE(limit.add(1h));
  EXPECT_FALSE(limit.add(1h + 1s));  // the others would leave room for 27 hours
}

}  // namespace
}  // namespace jouleprof::importers
