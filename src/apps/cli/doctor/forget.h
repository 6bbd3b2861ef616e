// `doctor --forget`: removes what is stored of GPUs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace jouleprof::cli {

// Removes the traits and the power levels of the named GPUs (none named: of all that are stored),
// and prints on stderr of how many. Errors: invalid_argument for a GPU that does not exist;
// not_found without NVML, where GPUs are named; of the file system.
Result<void> forget(const std::vector<std::string>& devices);

}  // namespace jouleprof::cli
