// `doctor --calibrate`: what a GPU's sensors really do, found with a load of the tool's own.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace jouleprof::cli {

// Calibrates the GPUs named (none named: all), one after another, tells its progress on stderr, and
// keeps the results (calibration_store.h). Takes about 20 s a GPU.
// Errors: not_found without NVML or CUDA; unavailable when a GPU is busy or the fit fails, in which
// case nothing is kept for that GPU.
Result<void> calibrate(const std::vector<std::string>& devices);

}  // namespace jouleprof::cli
