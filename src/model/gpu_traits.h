// What is known of the power sensors of a GPU generation before a device was calibrated.
#pragma once

#include <optional>
#include <string_view>

#include "model/sensor.h"

namespace jouleprof::model {

enum class GpuGeneration { kPascal, kVolta, kTuring, kAmpere, kAda, kHopper, kBlackwell };

// The generation of a device by its product name ("NVIDIA H100 80GB HBM3"), where the name tells.
std::optional<GpuGeneration> generation_of(std::string_view device_name);

// The traits of one device's power sensors. Absent ones are unknown.
struct GpuTraits {
  SensorTraits counter;
  SensorTraits ring;
  SensorTraits instant;
  SensorTraits average;
};

// Published and measured refresh periods and averaging windows: Yang, Adamek, Armour, "Part-time
// Power Measurements" (SC'24) for Pascal to Hopper; ring and counter as read on an H100. Hopper's
// response as fitted to bursts of known times on an H100 and H200s (docs/validation.md). `module`:
// a superchip's module scope.
GpuTraits default_traits(std::optional<GpuGeneration> generation, bool module);

}  // namespace jouleprof::model
