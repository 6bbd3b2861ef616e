// How the sensors of a domain see the activity: the offsets of their stamps, their time constant,
// and whether the counter adds up samples; with what else the recording leaves possible.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/regression/power_rows.h"
#include "analysis/timeline/locked_load.h"

namespace jouleprof::analysis {

inline constexpr std::size_t kTimings = 12;

struct PlausibleTiming {
  SensorTiming best;
  // kTimings of them, each as likely as the others; empty where the recording leaves no doubt. A
  // load that is locked to the sampler shows it one phase only: then there is doubt, and watts are
  // as different as these.
  std::vector<SensorTiming> others;
};

// Offsets maximise the likelihood of a plain regression on activity, times a prior: 2 ms wide for
// samples and 4 ms for the counter's edges, with far tails, -60 to 60 ms. Then the time constant
// that maximises the likelihood of both together, between 0.6 and 1.4 of `time_constant` (0: none,
// and none is fitted). Boards differ by a tenth, which would halve or double the power of short
// kernels that draw little. At last the counter: it integrates, or it adds up means as long and as
// far apart as the samples, at the phase that fits best. Uses the first two minutes and the
// signatures with most busy time. `clock_variation`: see KernelModel::fit; at 2 % and above the
// time constant is not fitted, because the clocks follow power slowly, too.
PlausibleTiming fit_timing(const ActivityTable& table, std::span<const ObservedPower> observed,
                           double time_constant, double clock_variation);

// The time constant alone; offsets are 0. For activity shorter than an offset, which could pass for
// one.
SensorTiming fit_time_constant(const ActivityTable& table, std::span<const ObservedPower> observed,
                               double time_constant, double clock_variation);

// A load that repeats itself in step with samples, which see few of its phases.
struct SamplingLock {
  double period = 0;  // seconds
  double error = 0;   // of the energy that the samples add up to, at most: more than 1 %
};

// The part's lock to the samples, where an entry has the given joules. Absent where the load is in
// no such step, where the samples' windows leave little between them, and where bins are wider than
// 2 ms, which hides a frame's course. Looks at 600,000 bins at most.
std::optional<SamplingLock> sampling_lock(
    const ActivityTable& table, const std::function<double(const ActivityTable::Entry&)>& joules,
    const SamplingSensor& sensor);

// Joules of an entry by powers that differ from signature to signature: where these are not known.
double any_joules(const ActivityTable& table, const ActivityTable::Entry& entry);

}  // namespace jouleprof::analysis
