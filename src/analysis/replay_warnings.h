// Warnings about isolated re-runs, for the readers of a profile.
#pragma once

#include <string>
#include <vector>

#include "analysis/timeline/recording_timelines.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// The time and energy of isolated re-runs within [begin, end], the time of the figures, and from
// there to the work's end; empty without any.
std::vector<std::string> replay_warnings(const model::Recording& recording, Timelines& timelines,
                                         HostTime begin, HostTime end, HostTime work_end);

}  // namespace jouleprof::analysis
