// Where inside a GPU the energy went: joules per kernel, layer, range and phase.
#pragma once

#include <vector>

#include "analysis/analyse.h"
#include "base/result.h"
#include "model/activity_profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// One profile for each GPU on which something was traced; for a CPU, if layers were timed on it.
// Empty when nothing was traced. Errors: invalid_argument as analyse(); corrupt when an activity
// chunk can't be decoded.
Result<std::vector<model::ActivityProfile>> attribute(const model::Recording& recording,
                                                      const Options& options = {});

}  // namespace jouleprof::analysis
