// calibration.json: what is known of each GPU of a user's machines, by UUID.
//
// Two processes that change it at the same time both succeed. Errors of a change: not_found where
// there is no path; of the file system. Then nothing was changed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "meters/nvml/gpu.h"
#include "model/domain.h"

namespace jouleprof::meters::nvml {

// $XDG_STATE_HOME/jouleprof/calibration.json, else ~/.local/state/jouleprof/calibration.json.
// Empty where neither variable is set.
std::filesystem::path calibration_path();

// Removes all that is stored of the GPUs with these UUIDs. Returns of how many something was
// stored. Errors: as of any change.
Result<std::size_t> forget_devices(const std::vector<std::string>& uuids);

// Removes all that is stored of every GPU of this machine, or scenario; otherwise the same.
Result<std::size_t> forget_all_devices();

// --- Sensor traits that `doctor --calibrate` found, by GPU UUID ---

// All stored results. A missing or damaged file gives none: calibration only refines the traits of
// the generation, and the same command measures it again.
Calibrations read_calibrations();

// Adds or replaces the traits of the GPUs in `found`. Errors: as of any change.
Result<void> keep_calibrations(const Calibrations& found);

// What `doctor --calibrate --wall` found of a board's power sensor: true power is gain x shown, and
// an offset that the meter does not show.
struct BoardGain {
  double gain = 1;
  double error = 0;  // relative, of the gain, at 95 %
  Power offset_low{}, offset_high{};
  std::string meter;
  RealTime observed{};

  // "calibrated on 2026-03-01 against METER, ±1.6 %"
  std::string text() const;
};

// Adds or replaces the gains of the GPUs in `found`, which read_calibrations() then has. What is
// stored of the boards' power levels is removed: it was observed with another gain.
// Errors: as of any change; invalid_argument for a gain that is not between 0.5 and 2.
Result<void> keep_gains(const std::map<std::string, BoardGain>& found);

// --- Power levels of boards that runs and calibrations observed, by GPU UUID ---

using BoardLevels = std::map<std::string, model::KnownLevels>;

// The stored levels. Of each level the last 8 observations are stored; it has power, temperature
// and date of the last one. Its spread reaches to the farthest of the others, and is never less
// than what the last one has itself. A missing file has no levels; a damaged observation is left
// out.
BoardLevels read_levels();

// Adds observations; an absent level changes nothing. An observation with the date of a stored one
// replaces it, so that one may be stored twice.
// Errors: invalid_argument for a power that is not above 0 or a spread below 0; as of any change.
// Then nothing is stored.
Result<void> keep_levels(const BoardLevels& observed);

}  // namespace jouleprof::meters::nvml
