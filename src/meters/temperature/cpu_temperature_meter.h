// The temperature of processors, as a gauge of the domains that another meter measures.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "meters/meter.h"

namespace jouleprof::meters {

struct CpuTemperatureOptions {
  std::filesystem::path root = "/";
  Demand demand = {};
};

// `meter` with a gauge temperature_celsius for each of its processor packages whose temperature the
// kernel states; `meter` itself where it states none. A package with several
// temperatures, and an estimate of all packages together, has the hottest. One probe for all, every
// 0.9 s or the demanded state period.
std::unique_ptr<Meter> with_cpu_temperatures(std::unique_ptr<Meter> meter,
                                             const CpuTemperatureOptions& options);

// A file with a temperature in thousandths of a degree Celsius.
struct CpuTemperature {
  std::filesystem::path file;
  // The physical id of the processor package, as in "package-0". Absent where the machine has
  // several and nothing states which one it is.
  std::optional<int> package;
};

// The temperatures of the hwmon chips coretemp (Intel) and k10temp (AMD) in /sys; where there is
// neither, those of the thermal zones x86_pkg_temp.
// https://docs.kernel.org/hwmon/coretemp.html, https://docs.kernel.org/hwmon/k10temp.html
//
// Every one that states what it measures, readable or not. Of coretemp the package, not its cores.
// For k10temp it is the die (Tdie) or, where it lists none, the control value (Tctl), which then
// equals it. A k10temp chip without labels (before Zen) has a control value on a scale of its own,
// which is no temperature. A processor with several k10temp chips has several entries.
std::vector<CpuTemperature> find_cpu_temperatures(const std::filesystem::path& root);

// Degrees Celsius. Errors: as read_integer's; corrupt for what no working processor has (below -40
// or above 150 degrees).
Result<double> read_celsius(const std::filesystem::path& file);

}  // namespace jouleprof::meters
