// The input of the regression: observed power over the traced time, and the idle power.
#pragma once

#include <span>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/kernel_model.h"
#include "analysis/levels/board_levels.h"
#include "analysis/processes/lost_end.h"
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

}  // namespace jouleprof::analysis
