#include "meters/nvml/calibration/level_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/json/json_reader.h"
#include "meters/nvml/calibration/calibration_file.h"

namespace jouleprof::meters::nvml {
namespace {

using model::KnownLevel;
using nlohmann::json;

constexpr std::size_t kKept = 8;
constexpr double kLargestPower = 1e5;  // watts
constexpr const char* kRest = "rest";
constexpr const char* kHeld = "held";

bool possible(const KnownLevel& level) {
  return level.power > Power{} && level.power.watts() <= kLargestPower && level.spread >= Power{} &&
         level.spread.watts() <= kLargestPower;
}

// Oldest first, as they were stored.
std::vector<KnownLevel> observations(const json& device, const char* key) {
  std::vector<KnownLevel> levels;
  JsonErrors errors{key};
  JsonReader(device, "", errors).each(key, [&](JsonReader& object) {
    double watts = 0;
    double spread = 0;
    std::int64_t at = 0;
    KnownLevel level;
    const bool complete = object.read("power_watts", watts, {0, kLargestPower}) &&
                          object.read("spread_watts", spread, {0, kLargestPower}) &&
                          object.read("observed_real_nanoseconds", at, {0, std::ldexp(1, 62)});
    object.read("temperature_celsius", level.temperature_celsius, {-100, 300});
    level.power = Power::watts(watts);
    level.spread = Power::watts(spread);
    level.observed = RealTime{Duration{at}};
    if (complete && possible(level)) levels.push_back(level);
  });
  return levels;
}

std::optional<KnownLevel> level_at(const json& device, const char* key) {
  const auto all = observations(device, key);
  if (all.empty()) return std::nullopt;
  KnownLevel level = all.back();
  for (const auto& other : all) {
    const double difference = std::abs((other.power - level.power).watts());
    level.spread = std::max(level.spread, Power::watts(difference));
  }
  return level;
}

void add_level(json& device, const char* key, const std::optional<KnownLevel>& level) {
  if (!level) return;
  auto all = observations(device, key);
  std::erase_if(all, [&](const KnownLevel& l) { return l.observed == level->observed; });
  all.push_back(*level);
  if (all.size() > kKept) all.erase(all.begin(), all.end() - kKept);
  json list = json::array();
  for (const auto& l : all) {
    json object = {{"power_watts", l.power.watts()},
                   {"spread_watts", l.spread.watts()},
                   {"observed_real_nanoseconds", l.observed.time_since_epoch().count()}};
    if (l.temperature_celsius) object["temperature_celsius"] = *l.temperature_celsius;
    list.push_back(std::move(object));
  }
  device[key] = std::move(list);
}

}  // namespace

BoardLevels read_levels() {
  BoardLevels all;
  const auto devices = read_devices();
  if (!devices) return all;
  for (const auto& [uuid, device] : devices->items()) {
    const model::KnownLevels levels{level_at(device, kRest), level_at(device, kHeld)};
    if (!levels.empty()) all[uuid] = levels;
  }
  return all;
}

Result<void> keep_levels(const BoardLevels& observed) {
  for (const auto& [uuid, levels] : observed) {
    for (const auto& level : {levels.rest, levels.held}) {
      if (!level || possible(*level)) continue;
      return fail(Errc::kInvalidArgument,
                  fmt::format("cannot store the power levels of {}: {} ± {} W is not possible",
                              uuid, level->power.watts(), level->spread.watts()));
    }
  }
  return change_devices("the power levels", [&](json& devices) {
    for (const auto& [uuid, levels] : observed) {
      if (levels.empty()) continue;
      add_level(devices[uuid], kRest, levels.rest);
      add_level(devices[uuid], kHeld, levels.held);
    }
  });
}

}  // namespace jouleprof::meters::nvml
