#include "apps/cli/doctor/level_text.h"

#include <fmt/format.h>

#include "report/quantity.h"

namespace jouleprof::cli {

std::string level_text(std::string_view name, const model::KnownLevel& level) {
  std::string text = fmt::format("{} {:.1f} W ± {:.2g} W, observed {}", name, level.power.watts(),
                                 level.spread.watts(), report::utc_seconds_text(level.observed));
  if (level.temperature_celsius) text += fmt::format(" at {:.0f} °C", *level.temperature_celsius);
  return text;
}

}  // namespace jouleprof::cli
