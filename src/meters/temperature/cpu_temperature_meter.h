// The temperature of processors, as a gauge of the domains that another meter measures.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "meters/meter.h"

namespace jouleprof::meters {

struct CpuTemperatureOptions {
  std::filesystem::path root = "/";
  Demand demand = {};
};

// `meter` with a gauge temperature_celsius for each of its processor packages whose temperature the
// kernel states (cpu_temperature.h); `meter` itself where it states none. A package with several
// temperatures, and an estimate of all packages together, has the hottest. One probe for all, every
// 0.9 s or the demanded state period.
std::unique_ptr<Meter> with_cpu_temperatures(std::unique_ptr<Meter> meter,
                                             const CpuTemperatureOptions& options);

}  // namespace jouleprof::meters
