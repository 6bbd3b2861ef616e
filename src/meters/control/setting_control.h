// What a sweep sets on a GPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace jouleprof::meters::control {

enum class Knob { kPowerLimit, kSmClock, kMemoryClock };

std::optional<Knob> parse_knob(std::string_view word);  // power, sm-clock, memory-clock
std::string_view word_of(Knob knob);                    // the same word
std::string_view name_of(Knob knob);                    // "power limit", "SM clock", ...
std::string_view unit_of(Knob knob);                    // "W", "MHz"
std::string_view label_of(Knob knob);  // "power_limit_watts", "sm_clock_megahertz", ...
std::optional<Knob> knob_of_label(std::string_view label);

// The values that a board accepts, in the knob's unit.
struct KnobRange {
  double least = 0;
  double most = 0;
  std::vector<double> steps;  // ascending; empty: each whole number from least to most

  // The nearest value that the board accepts.
  double nearest(double value) const;
  // The values that this board and another accept; empty (most < least) without any.
  KnobRange common(const KnobRange& other) const;
};

// Changing the setting of the boards of one job, with a way back.

// What one board reports of its setting.
struct ReadBack {
  std::string device;
  std::optional<double> requested;       // absent: the driver does not report it
  std::optional<double> enforced_watts;  // the power limit that holds
  std::optional<double> celsius;
};

// Thread safety: none, unless an implementation says otherwise.
class SettingControl {
 public:
  virtual ~SettingControl() = default;

  // The range that all boards have.
  virtual const KnobRange& range() const = 0;
  // The value before the first change; absent where boards differ, or the driver does not report
  // it.
  virtual std::optional<double> found() const = 0;

  // Sets all boards and reads them back. Errors: permission_denied, with what to ask for;
  // unavailable after the guard died.
  virtual Result<std::vector<ReadBack>> apply(double value) = 0;
  virtual std::vector<ReadBack> read_back() const = 0;
  // Restores what was found. May be called again. Errors: for the first board that was left: of the
  // driver; unavailable where another program or the driver has changed the setting since.
  virtual Result<void> restore() = 0;
  // Why no more changes are made: the guard died, and the settings were restored.
  virtual std::optional<Error> lost() const = 0;
};

}  // namespace jouleprof::meters::control
