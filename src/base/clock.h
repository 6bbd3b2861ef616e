// The clocks of the project, each with a time-point type of its own.
//
// HostTime (CLOCK_MONOTONIC) is the timeline everything is put on: it never steps. Drivers stamp
// their samples with the wall clock (RealTime), which can step; a ClockMap converts.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "jouleprof/units.h"

namespace jouleprof {

// What one of the system's clocks shows.
inline Duration read_clock(clockid_t id) noexcept {
  timespec ts{};
  clock_gettime(id, &ts);
  return std::chrono::seconds{ts.tv_sec} + std::chrono::nanoseconds{ts.tv_nsec};
}
// What this process has used, in all its threads.
inline Duration own_cpu_time() noexcept { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

struct HostClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<HostClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept { return time_point{read_clock(CLOCK_MONOTONIC)}; }
};

struct RealClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<RealClock>;
  static constexpr bool is_steady = false;
  // Nanoseconds since 1970.
  static time_point now() noexcept { return time_point{read_clock(CLOCK_REALTIME)}; }
};

using HostTime = HostClock::time_point;
using RealTime = RealClock::time_point;

// What the clocks showed at one instant.
struct ClockPoint {
  HostTime host;
  RealTime real;
  Duration suspended{};  // total time the machine has slept: CLOCK_BOOTTIME minus CLOCK_MONOTONIC

  static ClockPoint now() noexcept {
    // The tightest of a few bracketed readings: a preemption between two of them would skew the
    // pair.
    ClockPoint best;
    Duration tightest = Duration::max();
    for (int i = 0; i < 3; ++i) {
      const Duration before = read_clock(CLOCK_MONOTONIC);
      const Duration real = read_clock(CLOCK_REALTIME);
      const Duration boot = read_clock(CLOCK_BOOTTIME);
      const Duration after = read_clock(CLOCK_MONOTONIC);
      if (after - before >= tightest) continue;
      tightest = after - before;
      const Duration middle = before + (after - before) / 2;
      best = {HostTime{middle}, RealTime{real}, boot - middle};
    }
    return best;
  }
};

// Converts between wall time and host time through clock points taken along a recording.
// Between two points the nearer one in time decides, so a step of the wall clock moves only
// what lies on its side of the step.
class ClockMap {
 public:
  // Points in any order. With none, conversion treats both clocks as having one epoch.
  explicit ClockMap(std::vector<ClockPoint> points = {}) : points_(std::move(points)) {
    std::ranges::sort(points_, {}, &ClockPoint::host);
  }

  HostTime to_host(RealTime t) const {
    if (points_.empty()) return HostTime{t.time_since_epoch()};
    // Wall times need not be ordered (the clock may have stepped back), so all points are looked
    // at.
    const auto nearest = std::ranges::min_element(points_, [t](const auto& a, const auto& b) {
      return std::chrono::abs(a.real - t) < std::chrono::abs(b.real - t);
    });
    return nearest->host + (t - nearest->real);
  }
  RealTime to_real(HostTime t) const {
    if (points_.empty()) return RealTime{t.time_since_epoch()};
    auto after = std::ranges::lower_bound(points_, t, {}, &ClockPoint::host);
    if (after == points_.end()) --after;
    if (after != points_.begin() && t - std::prev(after)->host <= after->host - t) --after;
    return after->real + (t - after->host);
  }

 private:
  std::vector<ClockPoint> points_;  // by host time
};

// CPU time of the calling thread since it began, for the cost of single calls.
inline Duration thread_cpu_time() noexcept { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace jouleprof
