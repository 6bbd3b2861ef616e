// CPU package, cores, uncore, DRAM and platform energy from RAPL counters (Intel since Sandy
// Bridge, AMD since Zen), through powercap or, where that may not be read, perf events.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jouleprof/units.h"
#include "meters/meter.h"
#include "model/device/sensor.h"
#include "model/domain.h"

namespace jouleprof::meters::rapl {

// --- One way of reading RAPL counters, whatever the kernel interface behind it ---

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

// --- RAPL through the powercap files in /sys ---
// https://docs.kernel.org/power/powercap/powercap.html

// Finds the zones under <root>/sys/class/powercap by their `name`; the number in a zone's path is
// not the package's. A counter that is seen through MSR and MMIO is a mirror the second time.
// energy_uj needs root since CVE-2020-8694. Errors: not_found when there is no RAPL zone.
Result<Source> open_powercap(const std::filesystem::path& root);

// After how much a counter with this max_energy_range_uj starts again from zero. The kernel reports
// 2^32 - 1 units, the greatest value of its 32-bit register; the register wraps one unit later.
Energy wrap_of(Energy max_energy_range);

// --- RAPL through the kernel's `power` PMU, for users that may open perf events, not energy_uj ---
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

// Moves counters that would mislead from `source.counters` to `source.ignored`, with why. By name:
// dies of a package that has a zone itself. By their values, read again until each package has
// moved four times, for at most `longest` (zero: not at all):
//  - packages and DRAM that stand still (a guest, a stuck sensor);
//  - of counters of one kind that are equal (AMD's dies mirror their socket; one package read
//    through several CPUs), all but the first; psys that equals a package. Values are equal where
//    they stay within 2 ms of the power; perf's counts begin when they are opened, so they are
//    equal where their difference stays the same to the quantum.
// What belongs to a package that is left out is left out, too. `sleep` waits between two reads.
void leave_out_misleading(Source& source, Duration longest,
                          const std::function<void(Duration)>& sleep);

}  // namespace jouleprof::meters::rapl

namespace jouleprof::meters {

struct RaplOptions {
  std::filesystem::path root = "/";
  Demand demand = {};
  rapl::OpenEvent open_event = rapl::open_event;
  // How long counters are watched at most, to leave out those that stand still or count the same
  // energy. Zero: not at all.
  Duration watch = std::chrono::milliseconds{100};
};

// Domains: a package is kCpu ("package-0", or "package-0-die-1" where dies count apart); core and
// uncore are its children; dram is not, because package energy does not contain it; psys is
// kPlatform, which contains packages and more and is never added to a total.
//
// One probe for all counters, every 100 ms, or 10 ms for windows below a second, or the demanded
// poll period; in any case often enough to see every wrap at 1 kW a package.
//
// Not thread safe, as every Meter. Costs one read per counter, some microseconds each.
class RaplMeter : public Meter {
 public:
  // Errors: not_found on a machine without RAPL (most virtual machines).
  // Where RAPL exists but may not be read, the meter opens without sensors or domains, and
  // missing() has the error of each interface and how to get access.
  static Result<std::unique_ptr<RaplMeter>> open(const RaplOptions& options = {});

  std::string name() const override { return "RAPL"; }
  HostTime read(std::size_t index, model::Readings& out) override;
  void set_demand(const Demand& demand) override;
  // Notices name counters that stand still, are hidden, or count what another one counts.
  std::vector<std::string> take_notices() override { return std::exchange(notices_, {}); }

 private:
  RaplMeter(rapl::Source source, const RaplOptions& options);
  void add_domains(std::vector<rapl::Place> places, const std::string& cpu_name);
  std::vector<model::Domain>::iterator find_domain(const rapl::Place& place);

  std::vector<rapl::Counter> counters_;  // as sensors_
  std::vector<std::string> notices_;
};

}  // namespace jouleprof::meters
