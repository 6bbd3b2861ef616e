// The idle power of processors and memory: while the measured program does no work.
#pragma once

#include "analysis/levels/level_result.h"
#include "analysis/timeline/timeline.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// From the recording's idle spans before and after the work.
//  - Spans in which more than 25 % of all CPUs' time was busy are ignored. If none is left, idle
//    power is unknown.
//  - Where those before and after the work agree within their errors, they are joined. Where not,
//    those before the work are used, and the error is widened to reach the others. Spans after the
//    work alone get 10 % more error.
//  - The first 100 ms of a span longer than half a second are ignored, because some sensors lag.
LevelResult machine_idle(EnergyTimeline& timeline, const model::Domain& domain,
                         const model::Recording& recording, HostTime work_begin, HostTime work_end);

}  // namespace jouleprof::analysis
