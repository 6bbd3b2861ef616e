// A phase in the one word that every output uses.
#pragma once

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

}  // namespace jouleprof::model
