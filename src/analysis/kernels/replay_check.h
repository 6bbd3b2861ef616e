// Whether isolated re-runs took the time that the same kernels take in place.
#pragma once

#include <string>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/activity/sm_clocks.h"
#include "analysis/timeline/sensors/observed_power.h"

namespace jouleprof::analysis {

// A kernel whose re-run took another time than in place, by at most 30 %, or ran at another clock,
// and is used nevertheless.
struct DeviatingKernel {
  std::uint32_t kernel_class = 0;
  std::uint32_t variant = model::kNone;
  double ratio = 0;  // its power in place may differ by as much
};

// How many times the power in the program a kernel draws in its loop. Cold memory makes a kernel
// wait in the program: a launch then takes at least the loop's energy and at most its power, and
// the middle of both is taken. With the SM clock, power grows by its exponent in ErrorModel.
struct LoopPower {
  std::uint32_t kernel_class = 0;
  std::uint32_t variant = model::kNone;
  double begin = 0;  // seconds
  double end = 0;
  double factor = 1;
};

struct ReplayCheck {
  std::vector<std::string> warnings;
  std::vector<DeviatingKernel> deviating;
  std::vector<LoopPower> loops;
};

// Removes from `observed` the readings of isolated re-runs that do not represent the program:
//  - those of a kernel whose time per launch differs by more than 30 % from that in the program:
//    other work or a warmer cache, and other power;
//  - of the other re-runs, slots in which launches were slower than in place, as at a power limit;
//  - those at clocks too far from the program's, and all that do not know theirs where clocks
//    differed.
ReplayCheck drop_deviating_replays(const ActivityTable& table, const SmClocks& clocks,
                                   std::vector<ObservedPower>& observed);

}  // namespace jouleprof::analysis
