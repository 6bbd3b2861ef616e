// The meter's clocks; tests replace them.
#pragma once

#include <functional>

#include "base/clock.h"

namespace jouleprof::meters::nvml {

// Unset members mean the system's.
struct NvmlClock {
  std::function<ClockPoint()> now;
  std::function<Duration()> thread_cpu_time;  // CPU time of the calling thread
  std::function<void(Duration)> sleep;

  // All members set.
  static NvmlClock complete(NvmlClock given);
};

}  // namespace jouleprof::meters::nvml
