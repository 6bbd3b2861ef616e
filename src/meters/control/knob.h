// What a sweep sets on a GPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace jouleprof::meters::control
