// The loops in which layers and kernels were run alone, and what ran in them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/timeline/time_base.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Those of one trace, of which nothing ran yet. Absent: its chunks are damaged.
std::optional<std::vector<ActivityTable::Replay>> replay_loops(const model::Trace& trace,
                                                               std::uint32_t index,
                                                               const TimeBase& time);

// Adds what a class did about then, in seconds, to the loop that was going on, if any was.
void add_to_loop(std::span<ActivityTable::Replay> loops, double t, std::uint32_t kernel_class,
                 const ActivityTable::Replay::Ran& more);

}  // namespace jouleprof::analysis
