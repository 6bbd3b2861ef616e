// The timelines of a recording's domains, and their common span.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/timeline/timeline.h"
#include "model/recording.h"

namespace jouleprof::analysis {

struct RecordedSpan {
  HostTime begin{};
  HostTime end{};
};

// From the first to the last time in the recording; absent without any.
std::optional<RecordedSpan> recorded_span(const model::Recording& recording);

// One timeline for each of the recording's domains, in its order; absent without readings. The
// work's begin and end are marked.
using Timelines = std::vector<std::optional<EnergyTimeline>>;
Timelines timelines_of(const model::Recording& recording);

// The begin and end of a recording without a command: every domain with readings near the `first`
// moment or the end of `span` is known over the whole span. Sensors start and stop some seconds
// apart. A part of a device, which may be read seldom, takes at most a tenth of the time away.
HostTime common_begin(Timelines& timelines, HostTime first);
HostTime common_end(const model::Recording& recording, Timelines& timelines,
                    const RecordedSpan& span);

// Why a domain has no energy.
// A sentence, for a domain without readings.
std::string unavailable_reason(const model::Recording& recording, const model::Domain& domain);

}  // namespace jouleprof::analysis
