// A power sensor as its readings show it.
#pragma once

#include <limits>
#include <optional>
#include <span>

#include "model/device/sensor.h"

namespace jouleprof::analysis {

// The sensor, with a longer refresh period where its readings show that new values come clearly
// less often than its traits say: by more than half. The traits come from a table of boards, and a
// driver or firmware may differ. `readings`: of this sensor, in order of time. Only polled sensors
// change, with at least 20 new values and reads three times as frequent as these.
model::Sensor as_observed(model::Sensor sensor, std::span<const model::PowerReading> readings);

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
