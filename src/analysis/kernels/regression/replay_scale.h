// In isolated re-runs all kernels draw other power than in place, by one factor: caches are warmer
// and the board is cooler. The regression estimates the factor as one more column.
#pragma once

#include <cstdint>
#include <span>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/regression/power_regression.h"
#include "analysis/kernels/regression/power_rows.h"

namespace jouleprof::analysis {

// The prior of the difference, in percent of power above idle.
inline constexpr PowerPrior kReplayScale{0, 7, -50, 50};

// Sets `column` of the rows that lie in re-runs to a hundredth of the row's modelled power above
// idle. `watts`: the last solution, idle first, then the columns. Replaces an earlier value.
void set_replay_scale(PowerRows& rows, std::span<const ActivityTable::Replay> replays,
                      std::uint32_t column, const Eigen::VectorXd& watts);

}  // namespace jouleprof::analysis
