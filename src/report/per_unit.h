// Energy of one unit of work, of a run whose units the user counts: inferences, images, tokens.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/profile.h"

namespace jouleprof::report {

struct UnitCount {
  double count = 0;
  std::string name;
};

// "22600:inference", or "22600" for units without a name. Errors: invalid_argument.
Result<UnitCount> parse_unit_count(std::string_view text);

struct PerUnit {
  UnitCount unit;
  double seconds = 0;  // for one
  // Joules of one, of what the run quotes (report/total.h). Absent without a total.
  std::optional<double> joules;
  bool is_command = false;               // of the command; else of all devices
  double error_joules = 0;               // of its 95 % interval, downwards
  double upper_error_joules = 0;         // upwards
  double repeatability_joules = 0;       // the same without the calibration error
  std::optional<double> dynamic_joules;  // above rest; absent where rest is unknown
  model::Provenance provenance = model::Provenance::kUnavailable;
};

PerUnit per_unit(const model::Profile& profile, const UnitCount& unit, bool whole_machine = false);

}  // namespace jouleprof::report
