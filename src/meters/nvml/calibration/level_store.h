// Stores the power levels of boards that runs and calibrations observed, by GPU UUID
// (calibration_file.h).
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "model/device/power_levels.h"

namespace jouleprof::meters::nvml {

using BoardLevels = std::map<std::string, model::KnownLevels>;

// The stored levels. Of each level the last 8 observations are stored; it has power, temperature
// and date of the last one. Its spread reaches to the farthest of the others, and is never less
// than what the last one has itself. A missing file has no levels; a damaged observation is left
// out.
BoardLevels read_levels();

// Adds observations; an absent level changes nothing. An observation with the date of a stored one
// replaces it, so that one may be stored twice.
// Errors: invalid_argument for a power that is not above 0 or a spread below 0; as change_devices.
// Then nothing is stored.
Result<void> keep_levels(const BoardLevels& observed);

}  // namespace jouleprof::meters::nvml
