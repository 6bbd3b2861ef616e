#include <gtest/gtest.h>

#include "model/activity/device_timeline.h"

namespace jouleprof::model {
namespace {

TEST(FlatSums, SumsByKey) {
  FlatSums sums;
  for (int round = 0; round != 3; ++round) {
    for (std::uint64_t i = 0; i != 10'000; ++i) sums.add(i << 32 | i % 7, 1, i);
  }
  ASSERT_EQ(sums.sums().size(), 10'000U);
  EXPECT_EQ(sums.sums()[77].busy, 231U);
  EXPECT_EQ(sums.sums()[77].launches, 3U);
  for (int round = 0; round != 20; ++round) {
    sums.clear();
    EXPECT_TRUE(sums.sums().empty());
    sums.add(5, 1, 1);
    sums.add(6, 1, 1);
    sums.add(5, 1, 1);
    ASSERT_EQ(sums.sums().size(), 2U);
    EXPECT_EQ(sums.sums()[0].launches, 2U);
  }
}

}  // namespace
}  // namespace jouleprof::model
