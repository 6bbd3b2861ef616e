// Predicts the updates of an energy counter: their period is given, their phase is learnt.
#pragma once

#include <optional>

#include "base/clock.h"

namespace jouleprof::meters::nvml {

// Precise to some milliseconds, enough to place reads between two updates or around one. The
// analysis fits the phase for the figures (analysis/timeline/sensors/counter_edges.h).
class EdgeTracker {
 public:
  explicit EdgeTracker(Duration refresh) : refresh_(refresh) {}

  // An update became visible between two reads. Brackets wider than
  // 0.6 periods are ignored.
  void saw(HostTime before, HostTime after);
  void forget();

  // The first expected update later than `t`; absent until one was observed, or when the observed
  // updates do not fit the period (by a quarter).
  std::optional<HostTime> next_after(HostTime t) const;

 private:
  bool fits_period() const;

  Duration refresh_;
  // One update lies in here, and the others at whole periods from it.
  std::optional<HostTime> low_;
  HostTime high_{};
  // First and last update of a row without a gap and how many, to check the period itself.
  HostTime first_seen_{};
  HostTime last_seen_{};
  int seen_ = 0;
  bool row_ended_ = false;
};

}  // namespace jouleprof::meters::nvml
