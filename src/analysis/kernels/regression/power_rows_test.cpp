#include "analysis/kernels/regression/power_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace jouleprof::analysis {
namespace {

// Signature 0 runs for all of [0, 1), signature 1 for half of each bin of [1, 2).
ActivityTable two_classes() {
  ActivityTable table;
  table.classes.resize(2);
  for (int i = 0; i < 200; ++i) {
    table.bins.push_back({0.01 * i, 0.01, table.entries.size()});
    table.entries.push_back({i < 100 ? 0U : 1U, i < 100 ? 0.01F : 0.005F});
  }
  table.begin = 0;
  table.end = 2;
  return table;
}

constexpr std::uint32_t kColumns[] = {0, 1};

double share(const PowerRows& rows, std::size_t row, std::uint32_t column) {
  for (const auto& term : rows.of(row)) {
    if (term.column == column) return term.share;
  }
  return 0;
}

TEST(PowerRows, ShareIsTheBusyTimeOfASignature) {
  const ObservedPower observed[] = {{0.0, 0.5, 300, true},
                                    {0.5, 1.5, 200, true},
                                    {1.501, 1.506, 150, false},
                                    {2.5, 2.6, 90, true}};
  const auto rows = power_rows(two_classes(), kColumns, 3, observed, {});
  ASSERT_EQ(rows.rows.size(), 4u);
  EXPECT_NEAR(share(rows, 0, 0), 1, 1e-6);
  EXPECT_NEAR(share(rows, 0, 1), 0, 1e-6);
  EXPECT_NEAR(share(rows, 1, 0), 0.5, 1e-6);
  EXPECT_NEAR(share(rows, 1, 1), 0.25, 1e-6);
  EXPECT_NEAR(share(rows, 1, 2), 0.25, 1e-6);  // idle between launches
  EXPECT_NEAR(share(rows, 2, 1), 0.5, 1e-5);
  EXPECT_TRUE(rows.of(3).empty());
  EXPECT_EQ(rows.rows[3].watts, 90);
}

TEST(PowerRows, RowsComeInOrderOfTheirEnds) {
  const ObservedPower observed[] = {
      {1.5, 1.7, 3, true}, {0.2, 0.5, 1, true}, {0.9, 1.4, 2, false}, {0.1, 0.3, 0, false}};
  const auto rows = power_rows(two_classes(), kColumns, 3, observed, {});
  ASSERT_EQ(rows.rows.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(rows.rows[i].watts, static_cast<double>(i));
  EXPECT_NEAR(share(rows, 0, 0), 1, 1e-6);
  EXPECT_NEAR(share(rows, 2, 0), 0.2, 1e-6);
  EXPECT_NEAR(share(rows, 3, 1), 0.5, 1e-6);
}

TEST(PowerRows, RowsThatSeeAboutTheSameAreOneMix) {
  std::vector<ObservedPower> observed;
  const auto mixes = [&] { return mixes_of(power_rows(two_classes(), kColumns, 3, observed, {})); };
  for (int i = 0; i < 50; ++i) {
    observed.push_back({0.02 * i, 0.02 * i + 0.004, 300, false});      // all of signature 0
    observed.push_back({1 + 0.02 * i, 1.004 + 0.02 * i, 200, false});  // half of signature 1
  }
  EXPECT_EQ(mixes(), 2U);
  observed.push_back({0.97, 1.07, 250, true});  // 0.3 and 0.35 of both
  EXPECT_EQ(mixes(), 3U);
  observed.push_back({0.965, 1.065, 250, true});
  EXPECT_EQ(mixes(), 3U);
}

// Bins of 1 ms hold two kernels each; a window of 3.5 bins ends in the middle of one.
TEST(PowerRows, LaunchesLieInOneOfTheirPossibleOrders) {
  ActivityTable table;
  table.classes.resize(2);
  for (auto& c : table.classes) c.launches_busy = 4e-4 * static_cast<double>(c.whole_launches = 9);
  for (int i = 0; i < 10; ++i) {
    table.bins.push_back({1e-3 * i, 1e-3, table.entries.size()});
    table.entries.push_back({0, 4e-4F});
    table.entries.push_back({1, 4e-4F});
  }
  table.end = 0.01;
  const ObservedPower observed[] = {{0, 3.5e-3, 0, false}, {4e-3, 8e-3, 0, false}};
  const auto even = power_rows(table, kColumns, 3, observed, {});
  EXPECT_NEAR(share(even, 0, 0), 0.4, 1e-5);
  bool first_goes_first = false;
  bool second_goes_first = false;
  for (std::size_t order = 0; order < 12; order += 2) {
    const auto one = power_rows(table, kColumns, 3, observed, {}, order);
    const auto mirrored = power_rows(table, kColumns, 3, observed, {}, order + 1);
    EXPECT_NEAR(std::abs(share(one, 0, 0) - 0.4), 0.2 / 3.5, 1e-5);
    EXPECT_NEAR(share(one, 0, 0) + share(mirrored, 0, 0), 0.8, 1e-5);
    EXPECT_NEAR(share(one, 0, 2), 0.2, 1e-5);
    EXPECT_NEAR(share(one, 1, 0), 0.4, 1e-5);  // whole bins hold what they hold
    (share(one, 0, 0) > 0.4 ? first_goes_first : second_goes_first) = true;
  }
  EXPECT_TRUE(first_goes_first);
  EXPECT_TRUE(second_goes_first);
}

TEST(PowerRows, AFirstOrderLagDelaysActivityAndKeepsItsSum) {
  const double time_constant = 0.02;
  const ObservedPower observed[] = {{-1, 0.1, 0, true}, {0.1, 1.0, 0, true}, {1.0, 3.0, 0, true}};
  const auto rows = power_rows(two_classes(), kColumns, 3, observed, {time_constant, 0, 0});
  ASSERT_EQ(rows.rows.size(), 3u);
  // Seen up to t of a step at 0: t - time_constant * (1 - exp(-t / time_constant)).
  const double first = 0.1 - time_constant * (1 - std::exp(-0.1 / time_constant));
  EXPECT_NEAR(share(rows, 0, 0) * 1.1, first, 1e-6);
  EXPECT_NEAR(share(rows, 0, 0) * 1.1 + share(rows, 1, 0) * 0.9 + share(rows, 2, 0) * 2, 1.0, 1e-5);
  EXPECT_NEAR(share(rows, 2, 1) * 2, 0.5, 1e-5);
}

TEST(PowerRows, CountersAndSamplesHaveTheirOwnOffsets) {
  const ObservedPower observed[] = {{0.95, 1.05, 0, true}, {0.95, 1.05, 0, false}};
  const auto rows = power_rows(two_classes(), kColumns, 3, observed, {0, 0.05, -0.05});
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(share(rows, i, 0), rows.rows[i].counter ? 1 : 0, 1e-5);
  }
}

}  // namespace
}  // namespace jouleprof::analysis
