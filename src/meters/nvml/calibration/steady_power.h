// The power of an interval in which it was steady.
#pragma once

#include <vector>

#include "base/result.h"
#include "model/device/readings.h"

namespace jouleprof::meters::nvml {

struct SteadyPower {
  Power power;
  Power spread;  // half of a 95 % interval of means over 0.1 s; at least 1 W and 1 %
};

// From readings of one sensor in any order; of those after `begin`, means over 0.1 s are taken.
// Errors: unavailable with the reason: readings of less than 1 s; power that rises or falls (the
// means of both halves differ by more than 0.5 W and 0.5 %, beyond their errors); power that varies
// by more than 3 W and 3 %.
Result<SteadyPower> steady_power(const std::vector<model::PowerReading>& readings, HostTime begin);

}  // namespace jouleprof::meters::nvml
