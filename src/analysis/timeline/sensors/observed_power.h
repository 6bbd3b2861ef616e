// One observation of power by a sensor, with the time that it covers.
#pragma once

#include <cmath>

#include "base/clock.h"

namespace jouleprof::analysis {

// The mean power over [begin, end] of a TimeBase, not corrected for the sensor's first-order lag.
struct ObservedPower {
  double begin = 0;
  double end = 0;
  double watts = 0;
  bool counter = false;  // an energy counter's increment between two updates; else a sample
};

// Host time as seconds since an origin, for the estimators.

// Rounding errors stay below a nanosecond for months around the origin.
struct TimeBase {
  HostTime origin{};

  double seconds_of(HostTime t) const { return seconds(t - origin); }
  HostTime host_of(double s) const { return origin + duration_of(s); }
};

}  // namespace jouleprof::analysis
