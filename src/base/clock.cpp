#include "base/clock.h"

#include <time.h>

#include <algorithm>

namespace jouleprof {
namespace {

Duration read_clock(clockid_t id) noexcept {
  timespec ts{};
  clock_gettime(id, &ts);
  return std::chrono::seconds{ts.tv_sec} + std::chrono::nanoseconds{ts.tv_nsec};
}

}  // namespace

HostTime HostClock::now() noexcept { return HostTime{read_clock(CLOCK_MONOTONIC)}; }

RealTime RealClock::now() noexcept { return RealTime{read_clock(CLOCK_REALTIME)}; }

ClockPoint ClockPoint::now() noexcept {
  // The tightest of a few bracketed readings: a preemption between two of them would skew the pair.
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

ClockMap::ClockMap(std::vector<ClockPoint> points) : points_(std::move(points)) {
  std::sort(points_.begin(), points_.end(),
            [](const ClockPoint& a, const ClockPoint& b) { return a.host < b.host; });
}

HostTime ClockMap::to_host(RealTime t) const {
  if (points_.empty()) return HostTime{t.time_since_epoch()};
  // Wall times need not be ordered (the clock may have stepped back), so all points are looked at.
  const auto nearest =
      std::min_element(points_.begin(), points_.end(), [t](const auto& a, const auto& b) {
        return std::chrono::abs(a.real - t) < std::chrono::abs(b.real - t);
      });
  return nearest->host + (t - nearest->real);
}

RealTime ClockMap::to_real(HostTime t) const {
  if (points_.empty()) return RealTime{t.time_since_epoch()};
  auto after = std::lower_bound(points_.begin(), points_.end(), t,
                                [](const ClockPoint& p, HostTime at) { return p.host < at; });
  if (after == points_.end()) --after;
  if (after != points_.begin() && t - std::prev(after)->host <= after->host - t) --after;
  return after->real + (t - after->host);
}

Duration thread_cpu_time() noexcept {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec};
}

}  // namespace jouleprof
