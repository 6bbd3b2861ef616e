// RAPL through the powercap files in /sys.
// https://docs.kernel.org/power/powercap/powercap.html
#pragma once

#include <filesystem>

#include "meters/rapl/source.h"

namespace jouleprof::meters::rapl {

// Finds the zones under <root>/sys/class/powercap by their `name`; the number in a zone's path is
// not the package's. The same counter seen through MSR and MMIO is taken once, from the MSR.
// energy_uj needs root since CVE-2020-8694. Errors: not_found when there is no RAPL zone.
Result<Source> open_powercap(const std::filesystem::path& root);

// After how much a counter with this max_energy_range_uj starts again from zero. The kernel reports
// 2^32 - 1 units, the greatest value of its 32-bit register; the register wraps one unit later.
Energy wrap_of(Energy max_energy_range);

}  // namespace jouleprof::meters::rapl
