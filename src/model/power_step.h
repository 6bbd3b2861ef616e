// A power curve for drawing and export.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "jouleprof/units.h"

namespace jouleprof::model {

// The mean power of a stretch of time.
struct PowerStep {
  HostTime begin{};
  HostTime end{};
  Power power;
  // Half of its 95 % interval, run to run; absent: not known.
  std::optional<Power> error = std::nullopt;
};

// The members of "args" of a counter event in a Chrome trace: "watts", and where the interval is
// known "low", which is not below zero, and "high".
std::string counter_members(const PowerStep& step);

}  // namespace jouleprof::model
