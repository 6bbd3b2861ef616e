// How late each of a domain's sensors is, found from the recording itself.
#pragma once

#include <span>

#include "analysis/power_rows.h"

namespace jouleprof::analysis {

// The lateness of counter and samples, each chosen so that a plain regression on activity leaves
// least: -10 to 20 ms, to half a millisecond. A sensor whose rows hardly care (the activity is too
// uniform) keeps 0. `rise`: as the sensors are known. Looks at the first two minutes, with the
// classes that are busiest.
SensorTiming fit_timing(const ActivityTable& table, std::span<const SeenPower> seen, double rise);

}  // namespace jouleprof::analysis
