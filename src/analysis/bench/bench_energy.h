// The energies of a benchmark: of a case of ours, from the recording of its run, and of one
// inference whose latency was measured apart.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run.h"
#include "jouleprof/units.h"
#include "model/bench.h"
#include "model/profile.h"
#include "model/recording.h"

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
  // Covers the case's window, which holds all of its iterations. GPUs that do not do the work are
  // left out.
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

// --- Energy of one inference from a power log and a latency that was measured apart, by hand ---

// What one device's power readings in an interval come to.
struct PowerSummary {
  Power median;
  Power mean;
  std::size_t readings = 0;
};

struct DevicePower {
  std::string device;
  std::optional<PowerSummary> rest;  // outside of the work; absent: the log has no such row
  PowerSummary work;
};

// One entry for each GPU with readings during the work, in the recording's order.
std::vector<DevicePower> power_of_work(const model::Recording& recording);

}  // namespace jouleprof::analysis
