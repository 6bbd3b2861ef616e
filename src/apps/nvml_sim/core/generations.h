// What a device of a GPU generation is, unless its scenario says otherwise.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/nvml_sim/core/scenario.h"

namespace jouleprof::nvml_sim {

// "kepler" ... "blackwell", "custom".
const std::vector<std::string>& generation_names();

// Refresh and window of the sensors: Yang, Adamek, Armour, "Part-time Power Measurements", SC'24
// (arXiv 2312.02741); of Hopper, measured. Where nothing is published (the ring outside of Hopper,
// all of Blackwell) the values are chosen so that every kind of device has an example.
// `generation` must be one of generation_names().
DeviceSpec preset(std::string_view generation);

}  // namespace jouleprof::nvml_sim
