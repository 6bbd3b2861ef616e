// Where in time an energy counter's updates fall: the fixed period is known, the phase is learnt.
#pragma once

#include <optional>

#include "base/clock.h"

namespace jouleprof::meters::nvml {

// Only good enough to aim reads between two updates or around one (some milliseconds); fitting the
// phase for the figures themselves is the analysis's.
class EdgeTracker {
 public:
  explicit EdgeTracker(Duration refresh) : refresh_(refresh) {}

  // An update became visible between two reads. Brackets wider than
  // 0.6 periods are ignored.
  void saw(HostTime before, HostTime after);
  void forget();

  // The first expected update later than `t`; absent until one was seen, or when the updates seen
  // do not fit the period (a quarter off).
  std::optional<HostTime> next_after(HostTime t) const;

 private:
  bool fits_period() const;

  Duration refresh_;
  // One update lies in here, and the others at whole periods from it.
  std::optional<HostTime> low_;
  HostTime high_{};
  // First and last update seen and how many, to check the period itself.
  HostTime first_seen_{};
  HostTime last_seen_{};
  int seen_ = 0;
};

}  // namespace jouleprof::meters::nvml
