#include "apps/cli/measure/observed_levels.h"

#include "meters/nvml/calibration/level_store.h"

namespace jouleprof::cli {
namespace {

constexpr double kMostError = 5;  // watts: a wider interval helps no later run

std::optional<model::KnownLevel> known(const std::optional<model::PowerLevel>& level,
                                       RealTime observed) {
  if (!level || !level->observed || level->error.watts() > kMostError) return std::nullopt;
  return model::KnownLevel{level->power, level->error, level->temperature_celsius, observed};
}

}  // namespace

void store_observed_levels(const model::Profile& profile) {
  meters::nvml::BoardLevels levels;
  for (const auto& d : profile.domains) {
    if (d.domain.kind != model::DomainKind::kGpu || d.domain.uuid.empty()) continue;
    const model::KnownLevels found{known(d.rest_power, profile.start_time),
                                   known(d.held_power, profile.start_time)};
    if (!found.empty()) levels[d.domain.uuid] = found;
  }
  if (!levels.empty()) (void)meters::nvml::keep_levels(levels);
}

}  // namespace jouleprof::cli
