// NVML's return codes as errors.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "meters/nvml/api/nvml_api.h"

namespace jouleprof::meters::nvml {

// The device is lost for now: off the bus, waiting for a reset, or without a driver.
bool is_lost(abi::Return code);

// The device or driver does not offer this, and will not later.
bool is_unsupported(abi::Return code);

// What failed, in the driver's words: "nvmlInit: Driver Not Loaded".
Error nvml_error(const NvmlApi& api, std::string_view what, abi::Return code);

// The least invasive thing that would help; empty when nothing would.
std::string fix_for(abi::Return code);

}  // namespace jouleprof::meters::nvml
