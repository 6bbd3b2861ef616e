// What a domain draws when nothing of the measured work runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/timeline/timeline.h"
#include "model/recording.h"

namespace jouleprof::analysis {

struct IdlePower {
  Power power;
  Power error;  // half of the 95 % interval, gain error left out
};

struct IdleResult {
  std::optional<IdlePower> power;     // absent: unknown, never zero
  std::vector<std::string> warnings;  // why it is unknown or uncertain
};

// Learnt from the recording's idle spans before and after the work, through the timeline.
//
// - A span in which the GPU's utilisation is above 5 %, or that of the machine's CPUs above 25 %,
// is
//   left out; if none is left, idle is unknown.
// - The spans before the work decide: after it a GPU is warm and its clocks come down slowly. Where
//   before and after agree within their errors, they are joined by their weights; where they do
//   not, the error is widened to reach the other. Only spans after: they alone, with a tenth more
//   error.
// - The first 100 ms of a span are left out when it is longer than half a second: the start of a
//   recording and the end of the work are seen late by some sensors.
IdleResult idle_power(EnergyTimeline& timeline, const model::Domain& domain,
                      const model::Recording& recording, HostTime work_begin, HostTime work_end);

}  // namespace jouleprof::analysis
