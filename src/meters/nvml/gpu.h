// The devices that NVML lists, and the selection among them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/gpu_traits.h"

namespace jouleprof::meters::nvml {

// A part of a GPU with its own UUID; its energy is part of the GPU's and not measured alone.
struct MigDevice {
  unsigned index = 0;  // of the instance, within its GPU
  std::string uuid;    // "MIG-..."
  std::string name;
};

struct Gpu {
  unsigned index = 0;  // NVML's, in the order of the PCI bus
  abi::Device handle = nullptr;
  std::string name;
  std::string uuid;  // "GPU-..."
  Generation generation;
  bool mig_enabled = false;
  std::vector<MigDevice> mig_devices;
  // Set when the driver lists the device but refuses its handle (lost, no permission).
  std::optional<Error> error;
  std::string fix;

  std::string device() const;  // "gpu0"
};

// All GPUs of the machine. Errors: not_found when there are none; as the driver gives them.
Result<std::vector<Gpu>> list_gpus(const NvmlApi& api);

// The GPUs that `wanted` names: an index, a UUID or the beginning of one ("GPU-", "MIG-": the GPU
// that holds the instance). None named: all. Errors: invalid_argument for a name that fits none or
// several.
Result<std::vector<Gpu>> select_gpus(std::vector<Gpu> gpus, const std::vector<std::string>& wanted);

}  // namespace jouleprof::meters::nvml
