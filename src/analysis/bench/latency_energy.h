// Energy of one inference from a power log and a latency that was measured apart, by hand.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jouleprof/units.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Of one device's power readings in an interval.
struct PowerSummary {
  Power median;
  Power mean;
  std::size_t readings = 0;
};

struct DevicePower {
  std::string device;
  std::optional<PowerSummary> rest;  // outside of the work; absent: the log has no such row
  PowerSummary work;
};

// One entry for each GPU with readings during the work, in the recording's order.
std::vector<DevicePower> power_of_work(const model::Recording& recording);

}  // namespace jouleprof::analysis
