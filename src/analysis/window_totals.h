// The energy of all windows of one name together, without keeping any window.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/timeline.h"

namespace jouleprof::analysis {

struct WindowTotal {
  std::uint64_t count = 0;
  std::uint64_t resolved_count = 0;                  // of which are in `energies`
  Duration length{};                                 // together
  std::vector<Result<model::Measurement>> energies;  // by domain
};

// Windows of 0.1 s and more are asked of the timelines one by one, and their errors add in
// quadrature. Shorter ones are laid over steps of 5 ms: each step's energy is shared out by the
// time that windows cover. What that leaves open is counted against them all alike: in each stretch
// as long as the sensor resolves, with energy E and covered by the part c, a standard deviation of
// E c (1 - c) x 1.15, which is that of a share anywhere between 0 and E where c is a half.
// Overlapping windows count each for itself.
//
// Thread safety: none.
class WindowTotals {
 public:
  using Timelines = std::vector<EnergyTimeline*>;  // by domain; nullptr: never any energy

  explicit WindowTotals(std::size_t domains) : domains_(domains) {}

  void add(std::uint32_t name, HostTime begin, HostTime end);

  // Resolves for good what lies before `until`, and forgets the windows.
  void settle(HostTime until, const Timelines& timelines);

  // All windows so far; those not settled as the timelines have them now. Absent for a name without
  // a window.
  std::optional<WindowTotal> total(std::uint32_t name, const Timelines& timelines) const;

  // When the latest window of `name` ended; absent without one.
  std::optional<HostTime> latest_end(std::uint32_t name) const;

 private:
  struct Sum {  // in one domain
    double joules = 0;
    double gain_joules = 0;  // gain error, linear
    double shared_sigma = 0;
    double variance = 0;
    std::string missing;                     // why a part of it could not be had
    std::optional<model::Measurement> kind;  // provenance, sensor and method of one part
  };
  struct Long {
    HostTime begin{};
    HostTime end{};
  };
  struct Name {
    std::uint64_t count = 0;
    std::uint64_t resolved = 0;
    Duration length{};
    HostTime latest_end{};
    std::vector<Long> longs;
    std::int64_t first_step = 0;
    std::deque<double> covered;       // seconds of each step from first_step on
    std::deque<std::uint32_t> ended;  // short windows that ended in each
    std::vector<Sum> sums;
  };
  void resolve(Name& name, HostTime until, const Timelines& timelines) const;
  void resolve_steps(Name& name, std::int64_t steps, EnergyTimeline& timeline, Sum& sum) const;

  std::size_t domains_;
  std::unordered_map<std::uint32_t, Name> names_;
};

}  // namespace jouleprof::analysis
