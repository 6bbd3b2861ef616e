// The isolated re-runs of layers and kernels, and the launches in them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/timeline/sensors/time_base.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// The re-runs of one trace, without launches. Absent: its chunks are damaged.
std::optional<std::vector<ActivityTable::Replay>> replay_loops(const model::Trace& trace,
                                                               std::uint32_t index,
                                                               const TimeBase& time);

// Adds launches of a signature to the re-run at time `t` in seconds, if there is one.
void add_to_loop(std::span<ActivityTable::Replay> loops, double t, std::uint32_t kernel_class,
                 const ActivityTable::Replay::Ran& more);

}  // namespace jouleprof::analysis
