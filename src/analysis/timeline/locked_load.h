// What a sum of samples makes of a load that repeats (aliasing), and loads that may be locked to
// the samples.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/timeline/timeline.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Samples `every` seconds, each the mean over `window`, of power as it follows the load with a
// first-order lag.
struct SamplingSensor {
  double every = 0.02;
  double window = 0.004;
  double time_constant = 0;
};

// The largest relative error of the energy that such samples add up to, over all their phases.
// `power`: above idle, one value every `step` seconds. Near 0 for loads that are not locked to the
// samples; their error then falls with the time. Time: linear in the values.
double sampling_error(std::span<const double> power, double step, const SamplingSensor& sensor);

// The error for a load that is on for `duty` of each `period` seconds, for `length` seconds; a
// longer time than a minute is taken as one.
double square_wave_error(double period, double duty, const SamplingSensor& sensor,
                         double length = 4);

// How many times such samples count the energy of a step, by its place in their period.
std::vector<double> sampling_weights(double step, const SamplingSensor& sensor);

// The time after which such a load repeats itself: 4 to 250 ms; 0: it does not.
double period_of(std::span<const double> power, double step);

// Adds half of the 95 % interval of an error that is independent of a measurement's others.
void widen(model::Measurement& measurement, Energy by);

struct SuspectedLock {
  double period = 0;  // seconds
  double error = 0;   // of the energy above rest: half of the 95 % interval
  bool by_windows =
      false;  // their period is known; else samples are flat while the GPU was busy in part
};

// Suspects the load of a board whose activity was not traced: by windows of one name that begin at
// a fixed rate; or by samples that hardly differ although the GPU was busy for a part of the time
// only, as NVML's utilisation says: either many launches fit into a sample, or each sample sees the
// same phase. Absent without a measured buffer of samples.
std::optional<SuspectedLock> suspected_lock(const model::Recording& recording,
                                            const model::Domain& domain, EnergyTimeline& timeline,
                                            HostTime begin, HostTime end, double rest_watts);

}  // namespace jouleprof::analysis
