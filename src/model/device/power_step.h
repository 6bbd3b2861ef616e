// A power curve for drawing and export.
#pragma once

#include <optional>

#include "base/clock.h"
#include "jouleprof/units.h"

namespace jouleprof::model {

// The mean power of an interval.
struct PowerStep {
  HostTime begin{};
  HostTime end{};
  Power power;
  // Half of its 95 % interval, run to run; absent: not known, or not asked for.
  std::optional<Power> error = std::nullopt;
};

// An interval takes several times as long as the power.
enum class StepErrors : bool { kLeftOut, kWanted };

}  // namespace jouleprof::model
