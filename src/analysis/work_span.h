// Begin and end of a recording's work.
#pragma once

#include <optional>

#include "analysis/timeline/recording_timelines.h"
#include "model/recording.h"

namespace jouleprof::analysis {

struct WorkSpan {
  RecordedSpan recorded;  // the first and last moment of the recording
  HostTime begin{};
  HostTime end{};
  HostTime program_end{};  // `end` without the isolated re-runs after the program (--replay)

  double seconds_of(HostTime t) const { return seconds(t - begin); }
};

// Without a command, the time over which every domain is known. Absent when no moment is known.
std::optional<WorkSpan> work_span(const model::Recording& recording, Timelines& timelines);

}  // namespace jouleprof::analysis
