// Slices of time whose edges are round.
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace jouleprof::analysis {

// The shortest of 1, 2 and 5 times 1 s, 10 s, 1 min and 10 min that is not below `least`.
Duration round_step(Duration least);

// The step of about `most` slices of `length`, at least 1 s.
Duration step_of(Duration length, std::size_t most);

// The edge at or before `t` of slices whose edges lie at multiples of `step` from `origin` on.
HostTime edge_before(HostTime t, HostTime origin, Duration step);

}  // namespace jouleprof::analysis
