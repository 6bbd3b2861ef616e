// Stores the sensor traits that `doctor --calibrate` found for later runs, by GPU UUID
// (calibration_file.h).
#pragma once

#include "base/result.h"
#include "meters/nvml/gpu_traits.h"

namespace jouleprof::meters::nvml {

// All stored results. A missing or damaged file gives none: calibration only refines the traits of
// the generation, and the same command measures it again.
Calibrations read_calibrations();

// Adds or replaces the traits of the GPUs in `found`. Errors: as change_devices.
Result<void> keep_calibrations(const Calibrations& found);

}  // namespace jouleprof::meters::nvml
