// A level of power with its reasons, and how observations of one level are joined.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/device/power_levels.h"

namespace jouleprof::analysis {

struct LevelResult {
  std::optional<model::PowerLevel> level;  // absent: unknown, never zero
  std::string reason;                      // why this recording gave none; may be empty
  std::vector<std::string> warnings;
};

struct ObservedLevel {
  Power power;
  Power error;  // half of the 95 % interval, without the calibration error
};

// Inverse-variance weighted mean; its error covers all observations that disagree with it. Absent
// without any.
std::optional<ObservedLevel> join(const std::vector<ObservedLevel>& observed);

}  // namespace jouleprof::analysis
