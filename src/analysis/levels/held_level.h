// The power of a GPU that a context holds while nothing runs, rest included.
#pragma once

#include "analysis/levels/rest_level.h"

namespace jouleprof::analysis {

// Learnt from the 0.3 s before each reading of zero utilisation while the board was held and no
// launch was traced, if power was steady then: the median of their powers, with an interval that
// holds 80 % of them. Without such a reading, the level that earlier runs observed is used.
LevelResult held_level(EnergyTimeline& timeline, const model::Domain& domain,
                       const model::Recording& recording, const BoardState& state);

}  // namespace jouleprof::analysis
