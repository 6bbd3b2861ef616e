// A load whose period is locked to the sensor's samples, on a board whose activity was not traced.
#pragma once

#include <optional>

#include "analysis/timeline/timeline.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Adds half of the 95 % interval of an error that is independent of a measurement's others.
void widen(model::Measurement& measurement, Energy by);

struct SuspectedLock {
  double period = 0;  // seconds
  double error = 0;   // of the energy above rest: half of the 95 % interval
  bool by_windows =
      false;  // their period is known; else samples are flat while the GPU was busy in part
};

// By windows of one name that begin at a fixed rate; or by samples that hardly differ although the
// GPU was busy for a part of the time only, as NVML's utilisation says: either many launches fit
// into a sample, or each sample sees the same phase. Absent without a measured buffer of samples.
std::optional<SuspectedLock> suspected_lock(const model::Recording& recording,
                                            const model::Domain& domain, EnergyTimeline& timeline,
                                            HostTime begin, HostTime end, double rest_watts);

}  // namespace jouleprof::analysis
