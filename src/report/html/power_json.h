// Power over time, for the page's script.
#pragma once

#include <vector>

#include "report/json/json_text.h"
#include "report/power_track.h"

namespace jouleprof::report {

// One object for each track. Times are seconds since `origin`.
//   id, begin_seconds, end_seconds, step_seconds, resolution_seconds
//   energy_microjoules   of each step; null where nothing was read
//   error_microjoules, repeatability_microjoules, calibration_ratio   as in PowerTrack
//   high_watts, low_watts   the extremes within each step, where they are known
Json power_json(const std::vector<PowerTrack>& tracks, HostTime origin);

}  // namespace jouleprof::report
