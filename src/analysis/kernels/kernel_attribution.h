// Joules per kernel, layer, range and phase of one GPU, by regression on what ran when.
//
// The model: power = idle + sum over kernel classes of busy share x watts, as the sensor sees it
// (through its first-order lag, over its window). Rows are the energy counter's increments between
// its own edges and the samples over their windows, weighted by what the regression leaves of each.
// A class's watts have a prior around the mean busy power, half of it wide, and lie between 0 and
// the highest power seen. Idle is bound to what was measured while the GPU paused. Time between
// launches may draw a little above idle. Where several launches run at once, each has an equal part
// of the time, and a class draws there another power than alone: a column of its own, with a prior
// around no difference.
//
// The 95 % interval of a sum of kernels' energies joins, as independent standard deviations:
//  - the posterior's, with errors as they hang together over a second;
//  - 3.5 % of each class's energy: a kernel's watts depend on what ran before it, on operands and
//    temperature (looped alone, kernels differ by so much from what they take in place);
//  - 5 % of its energy while others ran beside, where its power depends on which;
//  - 4 W over the time between launches next to a class.
// `error` adds the sensor's gain.
#pragma once

#include <optional>

#include "analysis/timeline/timeline.h"
#include "base/result.h"
#include "model/activity_profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Absent when nothing was traced on the domain, or no power is known while it was. Errors: as
// activity_on().
Result<std::optional<model::ActivityProfile>> attribute_kernels(const model::Recording& recording,
                                                                const model::Domain& domain,
                                                                EnergyTimeline& timeline,
                                                                std::optional<HostTime> from,
                                                                std::optional<HostTime> to);

}  // namespace jouleprof::analysis
