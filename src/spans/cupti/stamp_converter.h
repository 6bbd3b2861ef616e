// Converts CUPTI's timestamps to host time.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace jouleprof::cupti {

// Assumes a constant rate of the wall clock between the last two clock points, unless it was set in
// between.
class StampConverter {
 public:
  StampConverter() { point(ClockPoint::now()); }
  explicit StampConverter(const ClockPoint& first) { point(first); }

  void point(const ClockPoint& now);

  // Nanoseconds of CLOCK_REALTIME to nanoseconds of HostTime.
  std::int64_t host(std::uint64_t stamp) const {
    const auto real = static_cast<std::int64_t>(stamp);
    const std::int64_t since = real - real_;
    const bool before = step_ > 0 ? since < -step_ / 2 : step_ < 0 && since > 0;
    return host_ + since + static_cast<std::int64_t>(static_cast<double>(since) * drift_) +
           (before ? step_ : 0);
  }

 private:
  bool any_ = false;
  std::int64_t host_ = 0;  // the last point
  std::int64_t real_ = 0;
  double drift_ = 0;       // of host time against the wall clock
  std::int64_t step_ = 0;  // of the wall clock, forward, since the point before
};

}  // namespace jouleprof::cupti
