// The energies of kernels, layers, ranges and phases of a traced GPU over slices of its time.
#pragma once

#include <cstddef>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/activity_rows.h"
#include "analysis/kernels/kernel_model.h"
#include "base/clock.h"
#include "model/activity/activity_profile.h"

namespace jouleprof::analysis {

// Which slices are wanted. Their edges lie at multiples of their length from `origin` on.
struct SliceRequest {
  HostTime origin{};
  std::size_t most_cells = 0;  // energies of one row over one slice, in all
};

// `rows` has filled `profile`, of the same table and model. `gain`: the sensor's relative error at
// 95 %. Slices are no shorter than the chunks in which the tracer sums the time of layers: 0.5 s
// (model::kScopeInterval), of older recordings 1 s. Within a chunk, a layer's part of a kernel's
// time counts as constant.
model::ActivitySlices activity_slices(const model::Recording& recording, const ActivityTable& table,
                                      const KernelModel& model, const ActivityRows& rows,
                                      double gain, const model::ActivityProfile& profile,
                                      const SliceRequest& request);

// --- Slices of time whose edges are round ---

// The shortest of 0.5 s and 1, 2 and 5 times 1 s, 10 s, 1 min and 10 min that is not below `least`.
Duration round_step(Duration least);

// The step of about `most` slices of `length`, at least `shortest`.
Duration step_of(Duration length, std::size_t most, Duration shortest);

// The edge at or before `t` of slices whose edges lie at multiples of `step` from `origin` on.
HostTime edge_before(HostTime t, HostTime origin, Duration step);

}  // namespace jouleprof::analysis
