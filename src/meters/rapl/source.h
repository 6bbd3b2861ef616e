// One way of reading RAPL counters, whatever the kernel interface behind it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "jouleprof/units.h"
#include "meters/meter.h"
#include "model/device/sensor.h"
#include "model/domain.h"

namespace jouleprof::meters::rapl {

// What a counter counts. `package` is the kernel's name of the package or die that the domain
// belongs to, "package-0" or "package-1-die-0"; empty for psys.
struct Place {
  model::DomainKind kind{};
  std::string package;

  bool operator==(const Place&) const = default;
};

// "RAPL dram of package-0", for messages.
std::string describe(const Place& place);

struct Counter {
  Place place;
  std::string name;  // model::Sensor::name
  model::SensorTraits traits;
  bool is_mirror = false;  // of another counter of this place, where there is one
  // The raw total. Errors: as the kernel gives them; corrupt when it is no energy.
  std::function<Result<Energy>()> read;
};

struct Unreadable {
  Place place;
  Error error;
};

// The counters that answer now and those that do not.
struct Source {
  std::vector<Counter> counters;
  std::vector<Unreadable> unreadable;
  std::vector<Missing> ignored;      // counters that would mislead, with why
  std::vector<std::string> notices;  // of those whose values show it
};

// RAPL through the powercap files in /sys.
// https://docs.kernel.org/power/powercap/powercap.html

// Finds the zones under <root>/sys/class/powercap by their `name`; the number in a zone's path is
// not the package's. A counter that is seen through MSR and MMIO is a mirror the second time.
// energy_uj needs root since CVE-2020-8694. Errors: not_found when there is no RAPL zone.
Result<Source> open_powercap(const std::filesystem::path& root);

// After how much a counter with this max_energy_range_uj starts again from zero. The kernel reports
// 2^32 - 1 units, the greatest value of its 32-bit register; the register wraps one unit later.
Energy wrap_of(Energy max_energy_range);

// RAPL through the kernel's `power` PMU, for users that may open perf events but not energy_uj.
// man 2 perf_event_open; /sys/bus/event_source/devices/power

// Opens a counting event for all processes on one CPU and returns its file descriptor, from which
// read() takes the count as 8 bytes. Tests put their own in its place.
using OpenEvent = std::function<Result<int>(std::uint32_t type, std::uint64_t config, int cpu)>;

// The system call. Errors: permission_denied without CAP_PERFMON when perf_event_paranoid is
// above 0.
Result<int> open_event(std::uint32_t type, std::uint64_t config, int cpu);

// Opens every energy event of <root>/sys/bus/event_source/devices/power on each CPU of its cpumask:
// one a package, or one a die. The kernel keeps these counts from wrapping.
// Errors: not_found when there is no such PMU.
Result<Source> open_perf(const std::filesystem::path& root, const OpenEvent& open);

// Adds the cores of each package of `source` that has none, by the PMU `power_core`: AMD counts
// each core apart, and their sum is the package's cores. Where there is no such PMU, nothing
// changes; what may not be opened is in `ignored`.
void add_core_energies(Source& source, const std::filesystem::path& root, const OpenEvent& open);

}  // namespace jouleprof::meters::rapl
