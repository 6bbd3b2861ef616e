// How often to look at processes: a look is not free.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace jouleprof::session {

// The time to the next look after one that took `cost` of CPU time, so that looks take at most
// 0.05 % of one core; not below `shortest`, and not above `longest` unless `shortest` is.
inline Duration pause_after(Duration cost, Duration shortest, Duration longest) {
  constexpr double kBudget = 0.0005;
  return std::clamp(duration_of(seconds(cost) / kBudget), shortest, std::max(longest, shortest));
}

}  // namespace jouleprof::session
