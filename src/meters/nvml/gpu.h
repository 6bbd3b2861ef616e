// The GPUs that NVML lists, and the traits of their sensors by generation.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "abi/nvml_abi.h"
#include "base/result.h"
#include "meters/nvml/api/nvml_api.h"
#include "model/device/sensor.h"
#include "model/device/sensor_table.h"

namespace jouleprof::meters::nvml {

using model::GpuTraits;

// Calibration results by device UUID.
using Calibrations = std::map<std::string, GpuTraits>;

// A device's generation. The compute capability is absent where the driver does not report it.
struct Generation {
  abi::Architecture architecture = abi::Architecture::kUnknown;
  std::optional<int> major;
  std::optional<int> minor;
};

// The traits of the device's generation. `module`: a superchip's module scope.
GpuTraits default_traits(const Generation& generation, bool module);

// nvmlDeviceGetPowerUsage returns the present power (up to Turing, and GA100) or the mean of the
// last second (every other GPU since Ampere).
bool power_usage_is_instant(const Generation& generation);

// `base` with every trait that `calibrated` has.
model::SensorTraits overlay(model::SensorTraits base, const model::SensorTraits& calibrated);
GpuTraits overlay(const GpuTraits& base, const GpuTraits& calibrated);

// --- The devices that NVML lists, and the selection among them ---

// A part of a GPU with its own UUID; its energy is part of the GPU's and not measured alone.
struct MigDevice {
  unsigned index = 0;  // of the instance, within its GPU
  std::string uuid;    // "MIG-..."
  std::string name;
  std::optional<unsigned> gpu_instance;
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
// several; unavailable for a UUID that fits none while a device does not answer.
Result<std::vector<Gpu>> select_gpus(std::vector<Gpu> gpus, const std::vector<std::string>& wanted);

}  // namespace jouleprof::meters::nvml
