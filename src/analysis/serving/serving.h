// Joules per request: the energy of a board, divided among the requests of the inference servers
// that used it.
//
// The energy of a step comes from StepModel, scaled so that the steps of each half second have the
// measured active energy. Within a step a request pays for its own work, and an equal part of what
// is fixed; what any prefill adds is divided among the requests that prefill. That is the Shapley
// value of a cost which is a sum of own parts and of two fixed parts (Shapley 1953).
#pragma once

#include <span>

#include "analysis/levels/board_levels.h"
#include "analysis/timeline/timeline.h"
#include "base/result.h"
#include "model/activity/serving.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// What is needed of one domain.
struct ServingBoard {
  const model::Domain* domain = nullptr;
  EnergyTimeline* timeline = nullptr;
  const BoardLevels* levels = nullptr;
};

// `boards`: GPUs with readings. Steps that begin in [begin, end] count, as far as they lie in it.
// `is_part`: only requests that were served in [begin, end] are listed. Empty without steps.
// Errors: corrupt, where a chunk cannot be decoded.
Result<model::ServingProfile> attribute_serving(const model::Recording& recording,
                                                std::span<const ServingBoard> boards,
                                                HostTime begin, HostTime end, bool is_part);

}  // namespace jouleprof::analysis
