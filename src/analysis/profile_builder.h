// The profile of one part of a recording.
#pragma once

#include "analysis/timeline/recording_timelines.h"
#include "analysis/work_span.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// `work`: all of it; the profile is of [begin, end]. Timelines have their marks.
model::Profile build_profile(const model::Recording& recording, Timelines& timelines,
                             const WorkSpan& work, HostTime begin, HostTime end);

}  // namespace jouleprof::analysis
