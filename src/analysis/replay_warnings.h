// What replays took, for the reader of a profile.
#pragma once

#include <string>
#include <vector>

#include "analysis/timeline/recording_timelines.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// What layers that were run alone took within [begin, end], the time of the figures, and from there
// to the work's end; empty without any.
std::vector<std::string> replay_warnings(const model::Recording& recording, Timelines& timelines,
                                         HostTime begin, HostTime end, HostTime work_end);

}  // namespace jouleprof::analysis
