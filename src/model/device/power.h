// The levels of a board's power: at rest, held by a context, and above.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "jouleprof/units.h"

namespace jouleprof::model {

// A level that an earlier run or calibration observed on the same board.
struct KnownLevel {
  Power power;
  Power spread;                               // half of a 95 % interval between runs
  std::optional<double> temperature_celsius;  // of the board, when it was observed
  RealTime observed{};

  bool operator==(const KnownLevel&) const = default;
};

// What is known of a board before the recording begins, by its UUID.
struct KnownLevels {
  std::optional<KnownLevel> rest;  // no process holds a context, clocks are down
  std::optional<KnownLevel> held;  // a context exists, nothing runs; rest is included

  bool empty() const { return !rest && !held; }
  bool operator==(const KnownLevels&) const = default;
};

// A level that the analysis of a recording uses.
struct PowerLevel {
  Power power;
  Power error;            // half of its 95 % interval, without the sensor's calibration error
  std::string source;     // "observed before the work", "observed on 2026-11-22", ...
  bool observed = false;  // in this recording
  std::optional<double> temperature_celsius;

  bool operator==(const PowerLevel&) const = default;
};

// A power curve for drawing and export.

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
