// The energy of each layer on a CPU, in proportion to its run time.
#pragma once

#include <optional>

#include "analysis/levels/board_levels.h"
#include "analysis/timeline/timeline.h"
#include "base/result.h"
#include "model/activity/activity_profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Divides the traced processes' share of the CPU's dynamic energy: among layers by the wall time of
// their own code; to backward passes, optimizer steps and code outside of all of them by the
// process's CPU time. Always an estimate, because all code is assumed to draw the same power.
// Absent when no layer was timed. Errors: corrupt when a chunk cannot be decoded.
Result<std::optional<model::ActivityProfile>> attribute_layer_time(
    const model::Recording& recording, const model::Domain& domain, EnergyTimeline& timeline,
    const BoardLevels& levels, std::optional<HostTime> from, std::optional<HostTime> to);

}  // namespace jouleprof::analysis
