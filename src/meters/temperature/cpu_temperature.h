// Temperatures of processor packages in /sys: the hwmon chips coretemp (Intel) and k10temp (AMD);
// where there is neither, the thermal zones x86_pkg_temp.
// https://docs.kernel.org/hwmon/coretemp.html, https://docs.kernel.org/hwmon/k10temp.html
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.h"

namespace jouleprof::meters {

// A file with a temperature in thousandths of a degree Celsius.
struct CpuTemperature {
  std::filesystem::path file;
  // The physical id of the processor package, as in "package-0". Absent where the machine has
  // several and nothing states which one it is.
  std::optional<int> package;
};

// Every one that states what it measures, readable or not. Of coretemp the package, not its cores.
// Of k10temp the die (Tdie) or, where it lists none, the control value (Tctl), which then equals
// it. A k10temp chip without labels (before Zen) has a control value on a scale of its own, which
// is no temperature. A processor with several k10temp chips has several entries.
std::vector<CpuTemperature> find_cpu_temperatures(const std::filesystem::path& root);

// Degrees Celsius. Errors: as read_integer's; corrupt for what no working processor has (below -40
// or above 150 degrees).
Result<double> read_celsius(const std::filesystem::path& file);

}  // namespace jouleprof::meters
