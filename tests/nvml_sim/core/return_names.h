// The names and texts of NVML's return codes.
#pragma once

#include <optional>
#include <string_view>

#include "abi/nvml_types.h"

namespace jouleprof::nvml_sim {

// The text of nvmlErrorString.
const char* error_string(abi::Return code);

// "NVML_ERROR_GPU_IS_LOST", "NVML_SUCCESS"
std::optional<abi::Return> parse_return_name(std::string_view name);

}  // namespace jouleprof::nvml_sim
