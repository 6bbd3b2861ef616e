// `doctor --calibrate`: measures the traits of a GPU's sensors with the tool's own load.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace jouleprof::cli {

// Calibrates the named GPUs (none named: all) one after another, prints its progress on stderr, and
// stores the results (calibration_store.h). Takes about 25 s for each GPU.
// Errors: not_found without NVML or CUDA; unavailable when a GPU is busy or the fit fails: then
// nothing is stored for that GPU.
Result<void> calibrate(const std::vector<std::string>& devices);

}  // namespace jouleprof::cli
