// The input of the regression: observed power over the traced time, without re-runs that do not
// represent the program, and the idle power.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/activity/replay_time.h"
#include "analysis/activity/sm_clocks.h"
#include "analysis/levels/board_levels.h"
#include "analysis/processes/recorded_use.h"
#include "analysis/timeline/sensors/observed_sensor.h"
#include "analysis/timeline/timeline.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// The prior of the idle power.
struct IdleHint {
  double watts = 0;
  double sigma = 0;
  // What a context may hold more than the board drew then: it was observed outside of the work
  // only.
  double held_sigma = 0;
};

struct KernelEvidence {
  std::vector<ObservedPower> observed;  // of the traced time; samples scaled to the counter
  IdleHint idle;
  bool idle_unseen = false;  // no pause was long enough: `idle` is of another run, or a guess
  double untraced = 0;       // of the kernels' power: what may be of processes without a trace
};

// Rests on the whole trace, so that all parts of a recording have the same powers; without the time
// of `lost`, in which kernels ran that no record has. `traced`: where processes without a trace
// worked, only the time without them is used; where that is little, their part is taken from the
// power.
KernelEvidence kernel_evidence(const model::Recording& recording, EnergyTimeline& timeline,
                               const ActivityTable& table, const BoardLevels& levels,
                               std::span<const LostEnd> lost,
                               std::span<const TracedPart> traced = {});

// When power or temperature limits reduced a device's clocks. From the readings of the clock-event
// reasons; each one is valid until the next.
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

// A kernel whose re-run took another time than in place, by at most 30 %, or ran at another clock,
// and is used nevertheless.
struct DeviatingKernel {
  std::uint32_t kernel_class = 0;
  std::uint32_t variant = model::kNone;
  double ratio = 0;  // its power in place may differ by as much
};

// How many times the power in the program a kernel draws in its loop. Cold memory makes a kernel
// wait in the program: a launch then takes at least the loop's energy and at most its power, and
// the middle of both is taken. With the SM clock, power grows as power_by_clock() says.
struct LoopPower {
  std::uint32_t kernel_class = 0;
  std::uint32_t variant = model::kNone;
  double begin = 0;  // seconds
  double end = 0;
  double factor = 1;
};

// Whether isolated re-runs took the time that the same kernels take in place.
struct ReplayCheck {
  std::vector<std::string> warnings;
  std::vector<DeviatingKernel> deviating;
  std::vector<LoopPower> loops;
};

// Removes from `observed` the readings of isolated re-runs that do not represent the program:
//  - those of a kernel whose time per launch differs by more than 30 % from that in the program:
//    other work or a warmer cache, and other power;
//  - of the other re-runs, slots in which launches were slower than in place, as at a power limit,
//    unless the program was at it, too, and the loop knows its clock;
//  - those at clocks too far from the program's, and all that do not know theirs where clocks
//    differed.
ReplayCheck drop_deviating_replays(const ActivityTable& table, const SmClocks& clocks,
                                   std::vector<ObservedPower>& observed);

}  // namespace jouleprof::analysis
