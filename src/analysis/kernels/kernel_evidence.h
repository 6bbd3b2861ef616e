// What kernels' power is learnt from: the sensors' words on the traced time, and the idle power.
#pragma once

#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/kernel_model.h"
#include "analysis/timeline/seen_power.h"
#include "analysis/timeline/timeline.h"
#include "model/recording.h"

namespace jouleprof::analysis {

struct KernelEvidence {
  std::vector<SeenPower> seen;  // over all that was traced; samples on the counter's scale
  IdleHint idle;
  bool idle_unseen = false;  // the GPU never paused for long enough: `idle` is a guess
};

// `begin`, `end`: the part that is asked for, over which samples and counter are compared.
KernelEvidence kernel_evidence(const model::Recording& recording, EnergyTimeline& timeline,
                               const ActivityTable& table, HostTime begin, HostTime end);

}  // namespace jouleprof::analysis
