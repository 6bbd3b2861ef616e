// The traits of a GPU generation's sensors, for devices that are not calibrated.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "abi/nvml_abi.h"
#include "model/device/gpu_traits.h"
#include "model/device/sensor.h"

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

// Those of the device's generation. `module`: a superchip's module scope.
GpuTraits default_traits(const Generation& generation, bool module);

// nvmlDeviceGetPowerUsage returns the present power (up to Turing, and GA100) or the mean of the
// last second (every other GPU since Ampere).
bool power_usage_is_instant(const Generation& generation);

// `base` with every trait that `calibrated` has.
model::SensorTraits overlay(model::SensorTraits base, const model::SensorTraits& calibrated);
GpuTraits overlay(const GpuTraits& base, const GpuTraits& calibrated);

}  // namespace jouleprof::meters::nvml
