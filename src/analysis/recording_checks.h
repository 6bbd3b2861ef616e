// Warnings about a recording, for the readers of its profile.
#pragma once

#include <string>
#include <vector>

#include "analysis/timeline/recording_timelines.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// The recorded warnings, and those about the data of [begin, end]: a recording that was cut off, a
// suspended machine, a wall clock that was set, a GPU at its power or temperature limits.
std::vector<std::string> recording_warnings(const model::Recording& recording, HostTime begin,
                                            HostTime end);

// Sensors of a domain's timeline whose reads failed for a second or more of [begin, end]: since
// when, why, and what is used there.
std::vector<std::string> failed_read_warnings(const model::Recording& recording,
                                              const std::string& device,
                                              const TimelineSensors& sensors, RecordedSpan span,
                                              HostTime work_begin);

// Warnings about isolated re-runs, for the readers of a profile.

// The time and energy of isolated re-runs within [begin, end], the time of the figures, and from
// there to the work's end; empty without any.
std::vector<std::string> replay_warnings(const model::Recording& recording, Timelines& timelines,
                                         HostTime begin, HostTime end, HostTime work_end);

}  // namespace jouleprof::analysis
