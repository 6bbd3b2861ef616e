// The timestamp offset of each of a domain's sensors, and their time constant, from the recording.
#pragma once

#include <span>

#include "analysis/kernels/regression/power_rows.h"

namespace jouleprof::analysis {

// The offsets of counter and samples, each the one that minimises the residuals of a plain
// regression on activity: -10 to 20 ms, in steps of 0.5 ms. Then the time constant that maximises
// the likelihood of both together, between 0.6 and 1.4 of `time_constant` (0: none, and none is
// fitted). Boards differ by a tenth, which would halve or double the power of short kernels that
// draw little. Where the data do not determine them (the activity is too uniform), offsets are 0
// and the time constant is the given one. Uses the first two minutes and the signatures with most
// busy time. `clock_variation`: see KernelModel::fit; at 2 % and above the time constant is not
// fitted, because the clocks follow power slowly, too.
SensorTiming fit_timing(const ActivityTable& table, std::span<const ObservedPower> observed,
                        double time_constant, double clock_variation);

// The time constant alone; offsets are 0. For activity shorter than an offset, which could pass for
// one.
SensorTiming fit_time_constant(const ActivityTable& table, std::span<const ObservedPower> observed,
                               double time_constant, double clock_variation);

}  // namespace jouleprof::analysis
