#include "analysis/processes/apportion.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

namespace jouleprof::analysis {
namespace {

Energy sum(const std::vector<Energy>& parts) {
  return std::accumulate(parts.begin(), parts.end(), Energy{});
}

TEST(Apportion, DealsInProportion) {
  const double weights[] = {1, 2, 1};
  const auto parts = apportion(Energy::microjoules(10), weights);
  EXPECT_EQ(sum(parts), Energy::microjoules(10));
  EXPECT_EQ(parts[1], Energy::microjoules(5));
  EXPECT_GE(parts[0], Energy::microjoules(2));
}

TEST(Apportion, IsEmptyWithoutAPositiveWeight) {
  EXPECT_TRUE(apportion(Energy::joules(1), {}).empty());
  const double weights[] = {0, -1, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_TRUE(apportion(Energy::joules(1), weights).empty());
}

TEST(Apportion, BadWeightsGetNothing) {
  const double weights[] = {-3, 1, std::numeric_limits<double>::infinity(), 0};
  const auto parts = apportion(Energy::joules(1), weights);
  EXPECT_EQ(parts[1], Energy::joules(1));
  EXPECT_EQ(sum(parts), Energy::joules(1));
}

TEST(Apportion, AlwaysSumsToTheWhole) {
  std::mt19937_64 random(5);
  std::uniform_int_distribution<std::int64_t> any(0, std::numeric_limits<std::int64_t>::max());
  std::exponential_distribution<double> weight(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<double> weights(1 + static_cast<std::size_t>(any(random) % 40));
    for (double& w : weights) w = std::pow(weight(random), 8);
    const Energy whole = Energy::microjoules(any(random) >> (any(random) % 60));
    const auto parts = apportion(whole, weights);
    ASSERT_EQ(sum(parts), whole);
    for (const Energy p : parts) ASSERT_GE(p, Energy{});
  }
}

}  // namespace
}  // namespace jouleprof::analysis
