// Power over time, reduced to what a screen shows.
#pragma once

#include "analysis/run.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

// One object for each domain with a power curve. Times are seconds since `origin`.
//   id, begin_seconds, step_seconds, resolution_seconds
//   energy_microjoules   of each step, which sum exactly; null where nothing was read
//   error_microjoules    half of each step's 95 % interval
//   high_watts, low_watts   the extremes within each step, where steps are longer than the sensor's
//                        resolution; else absent
//   repeatability_microjoules   from the first step's begin to each step's end: half of the 95 %
//                        interval without the calibration error
//   calibration_ratio    the calibration error, relative
// At most `steps` steps a domain. Of the whole recording the time before and after the command,
// too.
Json power_tracks(const analysis::Run& run, const analysis::Part& part, HostTime origin,
                  std::size_t steps);

}  // namespace jouleprof::report
