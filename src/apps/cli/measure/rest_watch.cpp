#include "apps/cli/measure/rest_watch.h"

#include <algorithm>
#include <cmath>

#include "model/device/sensor.h"

namespace jouleprof::cli {
namespace {

constexpr double kShortest = 5;     // seconds
constexpr std::size_t kFewest = 4;  // intervals
constexpr std::size_t kMostPoints = 256;
constexpr double kCooling = 4;  // seconds: time constant of power after a context ended
constexpr double kFallWatts = 0.5;
constexpr double kFallRatio = 0.005;
constexpr double kErrorWatts = 1;
constexpr double kErrorRatio = 0.01;
constexpr double kLowerWatts = 0.5;
constexpr double kSharper = 0.5;  // ratio of spreads

bool is_lower(const model::KnownLevel& level, const model::KnownLevel& known) {
  return level.power.watts() + kLowerWatts <= known.power.watts();
}
bool is_sharper(const model::KnownLevel& level, const model::KnownLevel& known) {
  return level.spread.watts() <= kSharper * known.spread.watts() &&
         std::abs((level.power - known.power).watts()) <= known.spread.watts();
}

constexpr double kMostError = 5;  // watts: a wider interval helps no later run

std::optional<model::KnownLevel> known(const std::optional<model::PowerLevel>& level,
                                       RealTime observed) {
  if (!level || !level->observed || level->error.watts() > kMostError) return std::nullopt;
  return model::KnownLevel{level->power, level->error, level->temperature_celsius, observed};
}

}  // namespace

void RestWatch::extend(const model::DomainSnapshot& domain, Series& series) {
  const Point whole{seconds(domain.energy_end - domain.energy_begin),
                    domain.energy->energy.joules(),
                    std::pow(domain.energy->repeatability.joules(), 2)};
  const bool counts_on = domain.energy_begin == series.begin;
  if (counts_on != series.counts_on) series.points.clear();
  series.counts_on = counts_on;
  series.begin = domain.energy_begin;
  auto& points = series.points;
  if (counts_on) {
    if (points.empty() || whole.seconds > points.back().seconds) points.push_back(whole);
  } else if (whole.seconds > 0) {
    if (points.empty()) points.emplace_back();
    const Point& last = points.back();
    points.push_back(
        {last.seconds + whole.seconds, last.joules + whole.joules, last.variance + whole.variance});
  }
  if (points.size() > kMostPoints) points.erase(points.begin(), points.begin() + kMostPoints / 2);
}

std::optional<model::KnownLevel> RestWatch::level_of(Series& series) {
  auto& points = series.points;
  if (points.size() <= kFewest) return std::nullopt;
  const Point& first = points.front();
  const Point& middle = points[points.size() / 2];
  const Point& last = points.back();
  const double length = last.seconds - first.seconds;
  if (length < kShortest) return std::nullopt;
  const double watts = (last.joules - first.joules) / length;
  const double before = (middle.joules - first.joules) / (middle.seconds - first.seconds);
  const double after = (last.joules - middle.joules) / (last.seconds - middle.seconds);
  const double to_fall = kCooling * (before - after) / (length / 2);
  if (to_fall > std::max(kFallWatts, kFallRatio * watts)) {
    points.erase(points.begin(), points.begin() + static_cast<std::ptrdiff_t>(points.size() / 2));
    return std::nullopt;
  }
  const double variance =
      series.counts_on ? first.variance + last.variance : last.variance - first.variance;
  const double error = std::sqrt(variance) / length;
  if (watts <= 0 || error > std::max(kErrorWatts, kErrorRatio * watts)) return std::nullopt;
  return model::KnownLevel{
      Power::watts(watts), Power::watts(std::hypot(error, std::abs(to_fall))), {}, {}};
}

bool RestWatch::add(const model::DomainSnapshot& domain, bool is_so, Series& series) const {
  if (!is_so || !domain.energy) {
    series.points.clear();
    return false;
  }
  extend(domain, series);
  auto level = level_of(series);
  if (!level) return false;
  auto& known = series.level;
  if (known && !is_lower(*level, *known) && !is_sharper(*level, *known)) return false;
  level->temperature_celsius = domain.gauge(model::gauge::kTemperature);
  level->observed = *begin_;
  known = level;
  return true;
}

bool RestWatch::add(const model::Snapshot& snapshot, const std::vector<bool>& held) {
  if (!begin_) begin_ = snapshot.time;
  bool changed = false;
  for (std::size_t d = 0; d < snapshot.domains.size(); ++d) {
    const auto& domain = snapshot.domains[d];
    const auto& what = domain.domain;
    if (what.kind != model::DomainKind::kGpu || what.parent || what.uuid.empty()) continue;
    auto& board = boards_[what.uuid];
    const auto clock = domain.gauge(model::gauge::kSmClock);
    if (clock) board.highest_clock = std::max(board.highest_clock, *clock);
    const bool is_held =
        (d < held.size() && held[d]) || domain.gauge(model::gauge::kProcessCount).value_or(0) > 0;
    const bool is_unused = clock && domain.gauge(model::gauge::kGpuUtilisation) == 0.0;
    const bool is_at_rest = is_unused && !is_held && *clock <= board.highest_clock / 2;
    add(domain, is_unused && is_held, board.held);
    if (!add(domain, is_at_rest, board.rest)) continue;
    levels_[what.uuid].rest = board.rest.level;
    changed = true;
  }
  return changed;
}

std::optional<Power> RestWatch::observed(const std::string& uuid, Series Board::*series) const {
  const auto found = boards_.find(uuid);
  if (found == boards_.end()) return std::nullopt;
  const auto& level = (found->second.*series).level;
  return level ? std::optional(level->power) : std::nullopt;
}

std::optional<Power> RestWatch::power(const std::string& uuid) const {
  return observed(uuid, &Board::rest);
}

std::optional<Power> RestWatch::held(const std::string& uuid) const {
  return observed(uuid, &Board::held);
}

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
