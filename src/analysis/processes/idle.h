// The idle power of a domain: while the measured program does no work on it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/timeline/timeline.h"
#include "model/recording.h"

namespace jouleprof::analysis {

struct IdlePower {
  Power power;
  Power error;  // half of the 95 % interval, without the calibration error
};

struct IdleResult {
  std::optional<IdlePower> power;     // absent: unknown, never zero
  std::vector<std::string> warnings;  // why it is unknown or uncertain
};

// From the recording's idle spans before and after the work.
//  - Spans in which the GPU's utilisation exceeds 5 %, or that of all CPUs 25 %, are ignored. If
//    none is left, idle power is unknown.
//  - Spans before the work decide, because afterwards a GPU is warm and lowers its clocks slowly.
//    Where both agree within their errors, they are combined by inverse-variance weighting. Where
//    not, the error is widened to reach the other. Spans after the work alone get 10 % more error.
//  - The first 100 ms of a span longer than half a second are ignored, because some sensors lag.
IdleResult idle_power(EnergyTimeline& timeline, const model::Domain& domain,
                      const model::Recording& recording, HostTime work_begin, HostTime work_end);

}  // namespace jouleprof::analysis
