// Division of an energy into parts that sum exactly to the whole.
#pragma once

#include <span>
#include <vector>

#include "jouleprof/units.h"

namespace jouleprof::analysis {

// Divides `whole` in proportion to `weights` by the largest remainder method (Hamilton): each part
// is within one microjoule of its exact share, and the parts sum to `whole` exactly. A weight that
// is negative or not finite counts as zero. Empty when no weight is positive. A part of a
// non-negative whole is never negative.
std::vector<Energy> apportion(Energy whole, std::span<const double> weights);

}  // namespace jouleprof::analysis
