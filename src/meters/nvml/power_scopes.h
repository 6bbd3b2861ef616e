// Which powers a device reports, and their scopes.
#pragma once

#include <optional>

#include "meters/nvml/gpu_traits.h"
#include "meters/nvml/probes/field_poll.h"

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

// Reads instant and average power of all scopes in one call, and nvmlDeviceGetPowerUsage where it
// adds to the fields. A power of zero is no value. Drivers without scopes give the GPU's power for
// each: a memory that draws no less than its GPU, or a module that draws no more, is treated as
// absent.
PowerScopes find_powers(const NvmlApi& api, abi::Device device, const Generation& generation);

}  // namespace jouleprof::meters::nvml
