// What `doctor --calibrate` found, kept for later runs, by GPU UUID.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "meters/nvml/gpu_traits.h"

namespace jouleprof::meters {

// $XDG_STATE_HOME/jouleprof/calibration.json, else ~/.local/state/jouleprof/calibration.json.
// Empty where neither variable is set.
std::filesystem::path calibration_path();

// All results kept. A file that is missing or can't be understood gives none: calibration sharpens
// what is known without it, and is measured again by the same command.
nvml::Calibrations read_calibrations();

// Adds or replaces the results of the GPUs in `found`. Errors: as the file system gives them.
Result<void> keep_calibrations(const nvml::Calibrations& found);

}  // namespace jouleprof::meters
