// Joules per layer of a CPU, by the time that each layer ran on the host.
#pragma once

#include <optional>

#include "analysis/timeline/timeline.h"
#include "base/result.h"
#include "model/activity_profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// The CPU's active energy of each stretch, times the traced processes' part of the CPU's use, dealt
// to layers by the wall time of their own code, and to backward passes, optimizers' steps and what
// is outside of all of them by the process's CPU time in them. Always an estimate: all are taken to
// draw the same power. Absent when nothing was timed. Errors: corrupt when a chunk can't be
// decoded.
Result<std::optional<model::ActivityProfile>> attribute_layer_time(
    const model::Recording& recording, const model::Domain& domain, EnergyTimeline& timeline,
    std::optional<HostTime> from, std::optional<HostTime> to);

}  // namespace jouleprof::analysis
