// What a sum of samples makes of a load that repeats: aliasing.
#pragma once

#include <span>

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

// The same of a load that is on for `duty` of each `period` seconds, for `length` seconds; of more
// than a minute as of one.
double square_wave_error(double period, double duty, const SamplingSensor& sensor,
                         double length = 4);

// The time after which such a load repeats itself: 4 to 250 ms; 0: it does not.
double period_of(std::span<const double> power, double step);

}  // namespace jouleprof::analysis
