// What is known of the sensors of a GPU generation before this very device was calibrated.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "abi/nvml_abi.h"
#include "model/sensor.h"

namespace jouleprof::meters::nvml {

// The traits of one device's power sensors. Absent ones are unknown.
struct GpuTraits {
  model::SensorTraits counter;
  model::SensorTraits ring;
  model::SensorTraits instant;
  model::SensorTraits average;
};

// Calibration results by device UUID.
using Calibrations = std::map<std::string, GpuTraits>;

// A device's generation. The compute capability is absent where the driver does not tell.
struct Generation {
  abi::Architecture architecture = abi::Architecture::kUnknown;
  std::optional<int> major;
  std::optional<int> minor;
};

// Published and measured refresh periods and averaging windows: Yang, Adamek, Armour, "Part-time
// Power Measurements" (SC'24) for Pascal to Hopper; ring and counter as read on an H100. Hopper's
// response as fitted to bursts of known times on an H100 and H200s (docs/validation.md). `module`:
// a superchip's module scope.
GpuTraits default_traits(const Generation& generation, bool module);

// nvmlDeviceGetPowerUsage tells the power now (up to Turing, and GA100) and not the mean of the
// last second (every other GPU since Ampere).
bool power_usage_is_instant(const Generation& generation);

// `base` with every trait that `calibrated` knows.
model::SensorTraits overlay(model::SensorTraits base, const model::SensorTraits& calibrated);
GpuTraits overlay(const GpuTraits& base, const GpuTraits& calibrated);

}  // namespace jouleprof::meters::nvml
