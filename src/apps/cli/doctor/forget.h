// `doctor --forget` and `--forget-kernels`: remove what is stored of GPUs and of kernels.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace jouleprof::cli {

// Removes the traits and the power levels of the named GPUs (none named: of all that are stored),
// and prints on stderr of how many. Errors: invalid_argument for a GPU that does not exist;
// not_found without NVML, where GPUs are named; of the file system.
Result<void> forget(const std::vector<std::string>& devices);

// Removes what runs remember of kernels, and prints on stderr which file. Errors: of the file
// system.
Result<void> forget_kernels();

}  // namespace jouleprof::cli
