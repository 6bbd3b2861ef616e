// Host time as seconds since an origin: what the estimators compute with.
#pragma once

#include <cmath>

#include "base/clock.h"

namespace jouleprof::analysis {

// Exact to well below a nanosecond for months around the origin.
struct TimeBase {
  HostTime origin{};

  double seconds_of(HostTime t) const { return seconds(t - origin); }
  HostTime host_of(double s) const { return origin + duration_of(s); }
};

}  // namespace jouleprof::analysis
