// `doctor --calibrate`: observes a GPU's power levels, and measures the traits of its sensors with
// the tool's own load.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace jouleprof::cli {

// Calibrates the named GPUs (none named: all) one after another, prints its progress on stderr, and
// stores the results (calibration_store.h, level_store.h). Takes about 30 s for each GPU, and up to
// 20 s more until it is at rest.
// Errors: not_found without NVML or CUDA; unavailable when a GPU is busy or the fit fails: then no
// traits are stored for that GPU, but levels that were observed are.
Result<void> calibrate(const std::vector<std::string>& devices);

}  // namespace jouleprof::cli
