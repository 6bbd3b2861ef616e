// Which powers a device tells, and of what.
#pragma once

#include <optional>

#include "meters/nvml/field_poll.h"
#include "meters/nvml/gpu_traits.h"

namespace jouleprof::meters::nvml {

struct ScopePowers {
  std::optional<Field> instant;
  std::optional<Field> average;

  bool any() const { return instant || average; }
};

struct PowerScopes {
  ScopePowers gpu;
  ScopePowers module;
  ScopePowers memory;
  abi::Return instant_code = abi::Return::kSuccess;  // why gpu.instant is absent
};

// Asks for instant and average power of all scopes in one call, and for nvmlDeviceGetPowerUsage
// where that says something the fields do not. A power of zero is no answer. Drivers that do not
// know scopes give the GPU's power for each: a memory that draws no less than its GPU, or a module
// that draws no more, is taken for that.
PowerScopes find_powers(const NvmlApi& api, abi::Device device, const Generation& generation);

}  // namespace jouleprof::meters::nvml
