// NVML's return codes in words.
#pragma once

#include <optional>
#include <string_view>

#include "abi/nvml_types.h"

namespace jouleprof::nvml_sim {

// What nvmlErrorString says; the text lives for ever.
const char* error_string(abi::Return code);

// "NVML_ERROR_GPU_IS_LOST", "NVML_SUCCESS"
std::optional<abi::Return> parse_return_name(std::string_view name);

}  // namespace jouleprof::nvml_sim
