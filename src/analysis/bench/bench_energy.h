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

// Parts of an energy; they sum to it exactly.
struct EnergyLevels {
  Energy rest;                  // the power before the work, without a context, times the time
  std::optional<Energy> held;   // what a GPU's context without work adds to it
  Energy active;                // what is left: the work
  Energy active_error;          // half of its 95 % interval
  Energy active_repeatability;  // the same without the calibration error
  std::string held_reason;      // why `held` is absent; it is then part of `active`
};

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
  std::optional<EnergyLevels> levels;       // of this domain
  std::string levels_reason;                // why they are absent
  std::optional<GaugeSummary> sm_clock;     // hertz
  std::optional<GaugeSummary> temperature;  // celsius
  // Absent where it was not read. Empty: nothing held the clocks down.
  std::optional<std::vector<ClockLimit>> limits;
};

// The window in which a GPU's context existed and nothing ran; the same for all cases.
inline constexpr const char* kHeldWindow = "held";

// Errors: not_found where the recording has no window of the case; as Run::profile().
Result<BenchEnergy> bench_energy(const Run& run, const model::BenchCase& bench);

}  // namespace jouleprof::analysis
