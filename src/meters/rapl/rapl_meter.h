// CPU package, cores, uncore, DRAM and platform energy from RAPL counters (Intel since Sandy
// Bridge, AMD since Zen), through powercap or, where that may not be read, perf events.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "meters/meter.h"
#include "meters/rapl/source.h"

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

namespace jouleprof::meters::rapl {

// Counters that stand still, and counters that count the same energy.

// Moves counters that would mislead from `source.counters` to `source.ignored`, with why. By name:
// dies of a package that has a zone itself. By their values, read again until each package has
// moved four times, for at most `longest` (zero: not at all):
//  - packages and DRAM that stand still (a guest, a stuck sensor);
//  - of counters of one kind that are equal (AMD's dies mirror their socket; one package read
//  through
//    several CPUs), all but the first; psys that equals a package. Values are equal where they stay
//    within 2 ms of the power; perf's counts begin when they are opened, so they are equal where
//    their difference stays the same to the quantum.
// What belongs to a package that is left out is left out, too. `sleep` waits between two reads.
void leave_out_misleading(Source& source, Duration longest,
                          const std::function<void(Duration)>& sleep);

}  // namespace jouleprof::meters::rapl
