// The timelines of a recording's domains, and what span they have in common.
#pragma once

#include <optional>
#include <vector>

#include "analysis/timeline/timeline.h"
#include "model/recording.h"

namespace jouleprof::analysis {

struct RecordedSpan {
  HostTime begin{};
  HostTime end{};
};

// The first and last moment that anything recorded tells of; absent when nothing does.
std::optional<RecordedSpan> recorded_span(const model::Recording& recording);

// One timeline for each of the recording's domains, in its order; none where no sensor spoke.
// The work's begin and end are marked as edges.
using Timelines = std::vector<std::optional<EnergyTimeline>>;
Timelines timelines_of(const model::Recording& recording);

// Where a recording that does not say so begins and ends, so that every domain which spoke near its
// `first` or `last` moment is known over the whole: sources start and stop some seconds apart.
HostTime common_begin(Timelines& timelines, HostTime first);
HostTime common_end(Timelines& timelines, HostTime last);

}  // namespace jouleprof::analysis
