// What a power sensor observed, and the sensor as its readings show it.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis {

// One observation of power by a sensor, with the time that it covers: the mean power over [begin,
// end] of a TimeBase, not corrected for the sensor's first-order lag.
struct ObservedPower {
  double begin = 0;
  double end = 0;
  double watts = 0;
  bool counter = false;  // an energy counter's increment between two updates; else a sample
};

// Host time as seconds since an origin, for the estimators. Rounding errors stay below a nanosecond
// for months around the origin.
struct TimeBase {
  HostTime origin{};

  double seconds_of(HostTime t) const { return seconds(t - origin); }
  HostTime host_of(double s) const { return origin + duration_of(s); }
};

// The sensor, with a longer refresh period where its readings show that new values come clearly
// less often than its traits say, by more than half, or where these say nothing. The traits come
// from a table of boards, and a driver or firmware may differ. `readings`: of this sensor, in order
// of time. Only polled sensors change, with at least 20 new values and reads three times as
// frequent as these.
model::Sensor as_observed(model::Sensor sensor, std::span<const model::PowerReading> readings);

// A driver's buffer takes its samples at a fixed rate, but stamps some of them late: on H100s and
// H200s (driver 580) one of five by 1 to 10 of 20 ms, while the value is of its turn. `stamps`: the
// newest ones in order, `next`: the one after them, in seconds. Between two that are whole periods
// apart, up to three that come later than their turn, by at most 0.6 periods, get the time of their
// turn. Returns how many of the last stamps were looked at; 0: nothing has changed.
std::size_t mend_late_stamps(std::span<double> stamps, double next, double period);
inline constexpr std::size_t kStampsLookedAt = 5;  // of `stamps`, the last ones

// Which of such stamps are no whole periods from both of their neighbours; empty where that are
// more than a fifth of them, or none.
std::vector<bool> off_turn(std::span<const double> stamps, double period);

// How often an energy counter's value is renewed, from its reads as they come. The table of boards
// may say too short a time; reads then show the same value for longer than that, never two values
// within it.
class CounterPeriod {
 public:
  void see(const model::CounterReading& reading);
  // A longer period than the known one, which the reads show, in seconds.
  std::optional<double> longer_than(double known) const;
  // Whether two updates were seen as close to each other as the known period says.
  bool confirms(double known) const;

 private:
  std::optional<model::CounterReading> first_;   // with the present value
  std::optional<model::CounterReading> newest_;  // likewise
  std::optional<HostTime> before_;               // the last read before the present value
  double unchanged_ = 0;                         // the longest time of one value, at least
  double unchanged_at_most_ = 0;                 // that time, at most
  double closest_ = std::numeric_limits<double>::infinity();  // two updates, at most
};

}  // namespace jouleprof::analysis
