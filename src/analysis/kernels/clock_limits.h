// When power or temperature limits reduced a device's clocks.
#pragma once

#include <optional>
#include <vector>

#include "analysis/activity/replay_time.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// From the readings of the clock-event reasons; each one is valid until the next.
class ClockLimits {
 public:
  ClockLimits(const model::Recording& recording, const model::Domain& domain);

  // The share of [begin, end] outside of isolated re-runs in which clocks were reduced; absent
  // without readings.
  std::optional<double> held_share(HostTime begin, HostTime end, const ReplayTime& replays) const;

 private:
  struct Interval {
    HostTime begin{};
    HostTime end{};
    bool held = false;
  };
  std::vector<Interval> intervals_;  // in order
};

}  // namespace jouleprof::analysis
