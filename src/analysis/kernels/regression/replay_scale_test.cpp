#include <gtest/gtest.h>

#include <vector>

#include "analysis/kernels/regression/power_regression.h"

namespace jouleprof::analysis {
namespace {

double share(const PowerRows& rows, std::size_t row, std::uint32_t column) {
  double sum = 0;
  for (const auto& term : rows.of(row)) {
    if (term.column == column) sum += term.share;
  }
  return sum;
}

TEST(ReplayScale, RowsOfReplaysHaveAHundredthOfTheirPower) {
  PowerRows rows;
  rows.columns = 3;
  rows.rows = {{0, 1, 300, true, 0}, {2, 3, 300, true, 1}, {3, 4, 300, true, 3}};
  rows.terms = {{0, 0.5F}, {0, 0.5F}, {1, 0.25F}, {1, 1.0F}};
  std::vector<ActivityTable::Replay> replays(1);
  replays[0].begin = 2;
  replays[0].end = 3.5;
  const Eigen::Vector4d watts(100, 400, 80, 0);
  for (int round = 0; round < 2; ++round) {  // the second one replaces the first
    set_replay_scale(rows, replays, 2, watts);
    EXPECT_EQ(share(rows, 0, 2), 0);
    EXPECT_NEAR(share(rows, 1, 2), (0.5 * 400 + 0.25 * 80) / 100, 1e-6);
    EXPECT_NEAR(share(rows, 2, 2), 0.5 * 80 / 100, 1e-6);
    EXPECT_NEAR(share(rows, 1, 0), 0.5, 1e-6);
    EXPECT_NEAR(share(rows, 2, 1), 1, 1e-6);
    EXPECT_EQ(rows.rows[0].first, 0u);
  }
}

}  // namespace
}  // namespace jouleprof::analysis
