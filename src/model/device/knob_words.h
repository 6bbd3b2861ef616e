// How settings of a GPU are named: on the command line, for people, and in files.
#pragma once

#include <array>
#include <string_view>

namespace jouleprof::model {

struct KnobWords {
  std::string_view word;  // of the command line
  std::string_view name;  // for people
  std::string_view unit;
  std::string_view label;     // in files, with the unit
  std::string_view smi_flag;  // with which nvidia-smi sets it
};

// In the order of meters::control::Knob.
inline constexpr std::array<KnobWords, 3> kKnobWords{{
    {"power", "power limit", "W", "power_limit_watts", "-pl"},
    {"sm-clock", "SM clock", "MHz", "sm_clock_megahertz", "-lgc"},
    {"memory-clock", "memory clock", "MHz", "memory_clock_megahertz", "-lmc"},
}};

// Null for an unknown label.
constexpr const KnobWords* knob_words(std::string_view label) {
  for (const auto& words : kKnobWords) {
    if (words.label == label) return &words;
  }
  return nullptr;
}

}  // namespace jouleprof::model
