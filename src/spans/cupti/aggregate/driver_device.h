// A device as CUDA's driver describes it, where CUPTI has no record of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "model/activity/activity.h"

namespace jouleprof::cupti {

// From the driver that the process has loaded; what the driver does not have stays empty.
model::TracedDevice driver_device(std::uint32_t ordinal);

// "GPU-..." or "MIG-...", by `kind`; empty where all sixteen bytes are zero.
std::string uuid_text(const char* kind, std::span<const unsigned char, 16> uuid);

// Whether CUDA's driver is loaded and initialised in this process.
enum class DriverState { kAbsent, kLoaded, kInitialised };
DriverState driver_state();

}  // namespace jouleprof::cupti
