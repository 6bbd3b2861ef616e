// Host time as seconds since an origin, for the estimators.
#pragma once

#include <cmath>

#include "base/clock.h"

namespace jouleprof::analysis {

// Rounding errors stay below a nanosecond for months around the origin.
struct TimeBase {
  HostTime origin{};

  double seconds_of(HostTime t) const { return seconds(t - origin); }
  HostTime host_of(double s) const { return origin + duration_of(s); }
};

}  // namespace jouleprof::analysis
