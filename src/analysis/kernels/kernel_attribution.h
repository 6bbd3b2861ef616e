// The energy of each kernel, layer, range and phase of one GPU, by regression of power on activity.
//
// Model: power = idle + sum over kernel signatures of busy share x watts, seen through the sensor's
// response (first-order lag, averaging window). Rows are the energy counter's increments between
// its updates, and the samples over their windows; weights come from the residuals of each kind.
//  - A signature's watts have a Gaussian prior around the mean busy power, half of it wide, and lie
//    between 0 and 1.3 times the highest observed power.
//  - Idle power is that observed while the GPU paused. Idle between launches may be a little above.
//  - Overlapping launches share the time equally. The power of a signature may differ there: a
//    column of its own, with a prior around no difference.
//
// The 95 % interval of a sum of kernels' energies adds independent standard deviations:
//  - of the regression: cluster-robust, clusters of 1 s (Liang and Zeger 1986);
//  - 3.5 % of each signature's energy: power depends on the kernels before, on operands and on
//    temperature (measured: kernels in a loop against the same kernels in place);
//  - 5 % of its energy in overlapped time, where power depends on the other kernels;
//  - 4 W over the idle time between launches next to a signature.
// `error` adds the sensor's calibration error.
#pragma once

#include <functional>
#include <optional>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/activity_rows.h"
#include "analysis/kernels/kernel_model.h"
#include "analysis/levels/board_levels.h"
#include "analysis/timeline/timeline.h"
#include "base/result.h"
#include "model/activity/activity_profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// What made an ActivityProfile, for those who ask more of it than the profile holds.
struct AttributedKernels {
  const ActivityTable& table;
  const KernelModel& model;
  const ActivityRows& rows;
  double gain;  // the sensor's relative error at 95 %
  const model::ActivityProfile& profile;
};
using OnAttributed = std::function<void(const AttributedKernels&)>;

// Idle energy is split into rest and held by `levels`, with the held power of the regression. What
// is left above its own error belongs to others where a process that was not traced used the
// device, else it is unattributed.
//
// `also` is called once where kernels have energies.
//
// Absent when nothing was traced on the domain, or its power over that time is unavailable. Errors:
// as activity_on().
Result<std::optional<model::ActivityProfile>> attribute_kernels(
    const model::Recording& recording, const model::Domain& domain, EnergyTimeline& timeline,
    const BoardLevels& levels, std::optional<HostTime> from, std::optional<HostTime> to,
    const OnAttributed& also = {});

// `levels` with the held power that attribution found: the same in all views of a recording.
BoardLevels with_held_power(BoardLevels levels, const model::ActivityProfile& activity);

}  // namespace jouleprof::analysis
