// A known power level of a board in words.
#pragma once

#include <string>
#include <string_view>

#include "model/device/power_levels.h"

namespace jouleprof::cli {

// "at rest 80.1 W ± 1 W, observed 2026-11-22 14:03:11 UTC at 31 °C"; `name`: "at rest".
std::string level_text(std::string_view name, const model::KnownLevel& level);

inline constexpr std::string_view kAtRest = "at rest";
inline constexpr std::string_view kHeld = "held by a context";

}  // namespace jouleprof::cli
