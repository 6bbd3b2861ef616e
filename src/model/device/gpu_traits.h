// The default traits of a GPU generation's power sensors. A GPU that is not listed has unknown
// traits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/device/sensor.h"

namespace jouleprof::model {

// So far of NVIDIA; other vendors' generations are added here.
enum class GpuGeneration { kPascal, kVolta, kTuring, kAmpere, kAda, kHopper, kBlackwell };

// The generation of a device by its product name ("NVIDIA H100 80GB HBM3"), where the name is
// listed.
std::optional<GpuGeneration> generation_of(std::string_view device_name);

// The scale error of a generation's sensors, as SensorTraits::gain_error. Against external meters
// (captures of Yang et al., see default_traits()) boards read from 7.0 % low (RTX A5000) to 3.0 %
// high (K40m); an A100 5.8 % low, an RTX 3090 5.5 % low.
double gain_error_of(std::optional<GpuGeneration> generation);

// The traits of one device's power sensors; absent ones are unknown.
struct GpuTraits {
  SensorTraits counter;
  SensorTraits ring;
  SensorTraits instant;
  SensorTraits average;
};

// Published and measured refresh periods and averaging windows: Yang, Adamek, Armour, "Part-time
// Power Measurements" (SC'24) for Pascal to Hopper; ring and counter as read on an H100. Hopper's
// response as fitted to bursts of known times on an H100 and H200s (docs/validation.md). `module`:
// the module scope of a superchip.
GpuTraits default_traits(std::optional<GpuGeneration> generation, bool module);

// The UUID of a board of AMD's, as ROCm writes it, of the hexadecimal number in its unique_id file;
// empty where that is no number or zero.
std::string amd_uuid(std::string_view unique_id);

}  // namespace jouleprof::model
