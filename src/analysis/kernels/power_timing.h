// How late each of a domain's sensors is and how slowly the board's power rises, found from the
// recording itself.
#pragma once

#include <span>

#include "analysis/kernels/power_rows.h"

namespace jouleprof::analysis {

// The lateness of counter and samples, each chosen so that a plain regression on activity leaves
// least: -10 to 20 ms, to half a millisecond. Then the rise, between 0.6 and 1.4 of `rise` (0:
// none, and none is looked for), chosen so for both together, because boards differ by a tenth, by
// which short bursts of the kernels that draw least would be off by half. Rows that hardly care
// (the activity is too uniform) leave lateness at 0 and the rise at `rise`. Looks at the first two
// minutes, with the classes that are busiest. `sway`: see KernelModel::fit; where clocks make power
// sway by 2 % the rise is left as it is, because the clocks follow power slowly, too.
SensorTiming fit_timing(const ActivityTable& table, std::span<const SeenPower> seen, double rise,
                        double sway);

}  // namespace jouleprof::analysis
