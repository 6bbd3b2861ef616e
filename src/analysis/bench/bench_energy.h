// The energies of a benchmark's case, from the recording of its run.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run.h"
#include "model/bench.h"
#include "model/profile.h"

namespace jouleprof::analysis {

struct GaugeSummary {
  double mean = 0;
  double low = 0;
  double high = 0;
};

struct ClockLimit {
  std::string name;  // "power_limit", ...
  double share = 0;  // of the readings
};

struct BenchEnergy {
  // Of the case's window: all of its iterations. GPUs that do not do the work are left out.
  model::Profile profile;
  std::vector<model::WindowGroup> phases;   // BenchCase::phases; energies in the profile's order
  std::optional<std::size_t> device;        // the domain that does the work
  std::optional<GaugeSummary> sm_clock;     // hertz
  std::optional<GaugeSummary> temperature;  // celsius
  // Absent where it was not read. Empty: nothing held the clocks down.
  std::optional<std::vector<ClockLimit>> limits;
};

// Errors: not_found where the recording has no window of the case; as Run::profile().
Result<BenchEnergy> bench_energy(const Run& run, const model::BenchCase& bench);

}  // namespace jouleprof::analysis
