// A phase in the one word that every output uses.
#pragma once

#include <optional>
#include <string_view>

#include "model/activity.h"

namespace jouleprof::model {

// "forward", "backward", "optimizer"; empty for none of them.
inline std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kOptimizer:
      return "optimizer";
    case Phase::kNone:
      break;
  }
  return {};
}

// Back from such a word; absent for any other.
inline std::optional<Phase> parse_phase(std::string_view word) {
  for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kOptimizer}) {
    if (phase_name(phase) == word) return phase;
  }
  return std::nullopt;
}

}  // namespace jouleprof::model
