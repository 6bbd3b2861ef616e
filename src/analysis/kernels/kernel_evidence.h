// The input of the regression: observed power over the traced time, and the idle power.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/activity/replay_time.h"
#include "analysis/kernels/kernel_model.h"
#include "analysis/levels/board_levels.h"
#include "analysis/processes/recorded_use.h"
#include "analysis/timeline/sensors/observed_power.h"
#include "analysis/timeline/timeline.h"
#include "model/recording.h"

namespace jouleprof::analysis {

struct KernelEvidence {
  std::vector<ObservedPower> observed;  // of the traced time; samples scaled to the counter
  IdleHint idle;
  bool idle_unseen = false;  // no pause was long enough: `idle` is of another run, or a guess
};

// Of the whole trace, so that all parts of a recording have the same powers; without the time of
// `lost`, in which kernels ran that no record has.
KernelEvidence kernel_evidence(const model::Recording& recording, EnergyTimeline& timeline,
                               const ActivityTable& table, const BoardLevels& levels,
                               std::span<const LostEnd> lost);

// When power or temperature limits reduced a device's clocks.

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
