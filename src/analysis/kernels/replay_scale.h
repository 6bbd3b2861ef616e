// Kernels that run alone draw other power than in place, all of them alike: they find warm caches,
// on a board that is cooler. One number for all of a recording's replays.
#pragma once

#include <cstdint>
#include <span>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/power_regression.h"
#include "analysis/kernels/power_rows.h"

namespace jouleprof::analysis {

// What is known of it beforehand, in hundredths of power above idle.
inline constexpr PowerPrior kReplayScale{0, 7, -50, 50};

// Gives `column` to the rows that lie in replays: a hundredth of what `watts` (idle first, then the
// columns) say of the row, above idle. Rows that have it already get it anew.
void set_replay_scale(PowerRows& rows, std::span<const ActivityTable::Replay> replays,
                      std::uint32_t column, const Eigen::VectorXd& watts);

}  // namespace jouleprof::analysis
