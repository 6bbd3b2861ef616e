// The clocks of the project, each with a time-point type of its own.
//
// HostTime (CLOCK_MONOTONIC) is the timeline everything is put on: it never steps. Drivers stamp
// their samples with the wall clock (RealTime), which can step; a ClockMap converts.
#pragma once

#include <chrono>
#include <vector>

#include "jouleprof/units.h"

namespace jouleprof {

struct HostClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<HostClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;  // CLOCK_MONOTONIC
};

struct RealClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<RealClock>;
  static constexpr bool is_steady = false;
  static time_point now() noexcept;  // CLOCK_REALTIME, nanoseconds since 1970
};

using HostTime = HostClock::time_point;
using RealTime = RealClock::time_point;

// What the clocks showed at one instant.
struct ClockPoint {
  HostTime host;
  RealTime real;
  Duration suspended{};  // total time the machine has slept: CLOCK_BOOTTIME minus CLOCK_MONOTONIC

  static ClockPoint now() noexcept;
};

// Converts between wall time and host time through clock points taken along a recording.
// Between two points the nearer one in time decides, so a step of the wall clock moves only
// what lies on its side of the step.
class ClockMap {
 public:
  // Points in any order. With none, conversion treats both clocks as having one epoch.
  explicit ClockMap(std::vector<ClockPoint> points = {});

  HostTime to_host(RealTime t) const;
  RealTime to_real(HostTime t) const;

 private:
  std::vector<ClockPoint> points_;  // by host time
};

// CPU time, for the cost of single calls.

// CPU time of the calling thread since it began.
Duration thread_cpu_time() noexcept;

}  // namespace jouleprof
