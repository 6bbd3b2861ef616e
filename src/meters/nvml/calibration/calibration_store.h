// Stores the results of `doctor --calibrate` for later runs, by GPU UUID.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "meters/nvml/gpu_traits.h"

namespace jouleprof::meters::nvml {

// $XDG_STATE_HOME/jouleprof/calibration.json, else ~/.local/state/jouleprof/calibration.json.
// Empty where neither variable is set.
std::filesystem::path calibration_path();

// All stored results. A missing or damaged file gives none: calibration only refines the traits of
// the generation, and the same command measures it again.
Calibrations read_calibrations();

// Adds or replaces the results of the GPUs in `found`. Errors: of the file system.
Result<void> keep_calibrations(const Calibrations& found);

}  // namespace jouleprof::meters::nvml
