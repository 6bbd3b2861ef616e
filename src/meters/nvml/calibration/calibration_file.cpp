#include "meters/nvml/calibration/calibration_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/json/json.h"
#include "model/field_json.h"

namespace jouleprof::meters::nvml {
namespace {

using model::KnownLevel;
using model::SensorTraits;
using nlohmann::json;

constexpr auto kSchema = "jouleprof.calibration/2";  // /1 has no power levels
constexpr std::size_t kLongest = std::size_t{64} << 20;

// After the UUID of a simulated GPU: "@" and a checksum (FNV-1a) of its scenario, because scenarios
// repeat UUIDs. Empty for real GPUs.
std::string scenario_mark() {
  const auto scenario = environment("JOULEPROF_NVML_SCENARIO");
  if (scenario.empty()) return {};
  std::uint64_t sum = 0xCBF29CE484222325ULL;
  for (const char c : read_file(scenario, kLongest).value_or(scenario)) {
    sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return fmt::format("@{:016x}", sum);
}

// Every GPU's, as the file has them.
Result<json> read_all(const std::filesystem::path& path) {
  const auto text = read_file(path, kLongest);
  if (!text && text.error().code != Errc::kNotFound) return forward_error(text);
  json devices = json::object();
  auto document = parse_json(text.value_or(""), path.string());
  if (!document || !document->is_object() || !document->contains("devices")) return devices;
  for (auto& [name, device] : (*document)["devices"].items()) {
    if (device.is_object()) devices[name] = std::move(device);
  }
  return devices;
}

// Takes out those of the machine, or scenario, of now, by UUID.
json take_present(json& all) {
  const auto mark = scenario_mark();
  json present = json::object();
  json others = json::object();
  for (auto& [name, device] : all.items()) {
    const auto at = name.find('@');
    const bool is_present = at == std::string::npos ? mark.empty() : name.substr(at) == mark;
    (is_present ? present[name.substr(0, at)] : others[name]) = std::move(device);
  }
  all = std::move(others);
  return present;
}

Result<std::filesystem::path> existing_path() {
  auto path = calibration_path();
  if (!path.empty()) return path;
  return fail(Errc::kNotFound, "neither XDG_STATE_HOME nor HOME is set. Set one of them");
}

SensorTraits traits_at(JsonReader& device, const char* key) {
  SensorTraits traits;
  device.object(key, [&](JsonReader& object) {
    const auto read = [&](const char* name, std::optional<Duration>& out) {
      double s = 0;
      if (object.read(name, s, {0, 100})) out = duration_of(s);
    };
    read("refresh_seconds", traits.refresh);
    read("window_seconds", traits.window);
    read("lag_seconds", traits.lag);
    read("rise_seconds", traits.rise);
  });
  return traits;
}

json to_json(const SensorTraits& traits) {
  json object = json::object();
  if (traits.refresh) object["refresh_seconds"] = seconds(*traits.refresh);
  if (traits.window) object["window_seconds"] = seconds(*traits.window);
  if (traits.lag) object["lag_seconds"] = seconds(*traits.lag);
  if (traits.rise) object["rise_seconds"] = seconds(*traits.rise);
  return object;
}

constexpr const char* kGain = "gain";

std::optional<BoardGain> gain_at(JsonReader& device) {
  BoardGain gain;
  bool complete = false;
  device.object(kGain, [&](JsonReader& object) {
    double low = 0;
    double high = 0;
    std::int64_t at = 0;
    complete = object.read("gain_ratio", gain.gain, {0.5, 2}) &&
               object.read("error_ratio", gain.error, {0, 1}) &&
               object.read("offset_low_watts", low, {-1e3, 1e3}) &&
               object.read("offset_high_watts", high, {-1e3, 1e3}) && low <= high &&
               object.read("meter", gain.meter) &&
               object.read("observed_real_nanoseconds", at, {0, std::ldexp(1, 62)});
    gain.offset_low = Power::watts(low);
    gain.offset_high = Power::watts(high);
    gain.observed = RealTime{Duration{at}};
  });
  if (!complete) return std::nullopt;
  return gain;
}

void set_gain(const BoardGain& gain, GpuTraits& traits) {
  traits.set_scale({-gain.error, gain.error, gain.offset_low, gain.offset_high, gain.text()});
  for (SensorTraits* t : {&traits.counter, &traits.ring, &traits.instant, &traits.average}) {
    t->correction = gain.gain;
  }
}

constexpr std::size_t kKept = 8;
constexpr double kLargestPower = 1e5;  // watts
constexpr const char* kRest = "rest";
constexpr const char* kHeld = "held";

bool possible(const KnownLevel& level) {
  const double celsius = level.temperature_celsius.value_or(0);
  return level.power > Power{} && level.power.watts() <= kLargestPower && level.spread >= Power{} &&
         level.spread.watts() <= kLargestPower && celsius >= -100 && celsius <= 300 &&
         level.observed >= RealTime{};
}

// Oldest first, as they were stored.
std::vector<KnownLevel> observations(const json& device, const char* key) {
  std::vector<KnownLevel> levels;
  const auto found = device.find(key);
  if (found == device.end()) return levels;
  for (const json& object : *found) {
    KnownLevel level;
    model::JsonFieldReader reader(object);
    fields(level, reader);
    if (reader.good() && possible(level)) levels.push_back(level);
  }
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
    fields(l, model::JsonFieldWriter(list.emplace_back()));
  }
  device[key] = std::move(list);
}

// The devices of the file: an object with an object for each UUID; of simulated ones those of the
// scenario of now (JOULEPROF_NVML_SCENARIO). Empty without a file, and for a
// damaged one: what it holds only refines other figures, and can be measured again.
// Errors: not_found where there is no path; of the file system.
Result<json> read_devices() {
  const auto path = existing_path();
  if (!path) return forward_error(path);
  auto all = read_all(*path);
  if (!all) return all;
  return take_present(*all);
}

// Changes the devices. Two processes that do so at the same time both succeed: the second one gets
// the devices that the first one stored. `what` is stored, for messages ("the calibration").
// Errors: as read_devices, and of writing: then nothing was changed.
Result<void> change_devices(std::string_view what,
                            const std::function<void(json& devices)>& change) {
  const auto failed = [&](Error error) {
    error.message = fmt::format("cannot store {}: {}", what, error.message);
    return tl::unexpected(std::move(error));
  };
  const auto path = existing_path();
  if (!path) return failed(path.error());
  const auto lock = FileLock::take(path->string() + ".lock");
  if (!lock) return failed(lock.error());
  auto all = read_all(*path);
  if (!all) return failed(all.error());
  json devices = take_present(*all);
  change(devices);
  const auto mark = scenario_mark();
  for (auto& [uuid, device] : devices.items()) (*all)[uuid + mark] = std::move(device);
  const json document = {{"schema", kSchema}, {"devices", std::move(*all)}};
  const auto text = json_text(document, 2) + "\n";
  // A link, as of a folder of settings under version control, stays one.
  const auto written = replace_file(without_links(*path), text);
  if (!written) return failed(written.error());
  return {};
}

}  // namespace

std::filesystem::path calibration_path() {
  const auto folder = user_folder("XDG_STATE_HOME", ".local/state");
  return folder.empty() ? folder : folder / "jouleprof/calibration.json";
}

Result<std::size_t> forget_devices(const std::vector<std::string>& uuids) {
  std::size_t forgotten = 0;
  auto done = change_devices("the calibration", [&](json& devices) {
    for (const auto& uuid : uuids) forgotten += devices.erase(uuid);
  });
  if (!done) return forward_error(done);
  return forgotten;
}

Result<std::size_t> forget_all_devices() {
  std::size_t forgotten = 0;
  auto done = change_devices("the calibration", [&](json& devices) {
    forgotten = devices.size();
    devices.clear();
  });
  if (!done) return forward_error(done);
  return forgotten;
}

std::string BoardGain::text() const {
  const auto day = std::chrono::floor<std::chrono::days>(
      std::chrono::sys_time<Duration>{observed.time_since_epoch()});
  const std::chrono::year_month_day date{day};
  return fmt::format("calibrated on {:04d}-{:02d}-{:02d} against {}, ±{:.1f} %",
                     static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()), meter, 100 * error);
}

Result<void> keep_gains(const std::map<std::string, BoardGain>& found) {
  for (const auto& [uuid, gain] : found) {
    if (gain.gain >= 0.5 && gain.gain <= 2) continue;
    return fail(Errc::kInvalidArgument,
                fmt::format("cannot store the gain of {}: {} is not possible", uuid, gain.gain));
  }
  return change_devices("the calibration", [&](json& devices) {
    for (const auto& [uuid, gain] : found) {
      json& device = devices[uuid];
      if (!device.is_object()) device = json::object();
      device.erase("rest");
      device.erase("held");
      device[kGain] = {{"gain_ratio", gain.gain},
                       {"error_ratio", gain.error},
                       {"offset_low_watts", gain.offset_low.watts()},
                       {"offset_high_watts", gain.offset_high.watts()},
                       {"meter", gain.meter},
                       {"observed_real_nanoseconds", gain.observed.time_since_epoch().count()}};
    }
  });
}

Calibrations read_calibrations() {
  Calibrations all;
  const auto devices = read_devices();
  if (!devices) return all;
  // A wrong value stays unknown; the next calibration replaces it.
  JsonErrors ignored{calibration_path().string()};
  for (const auto& [uuid, value] : devices->items()) {
    JsonReader device(value, uuid, ignored);
    all[uuid] = {traits_at(device, "counter"), traits_at(device, "ring"),
                 traits_at(device, "instant"), traits_at(device, "average")};
    if (const auto gain = gain_at(device)) set_gain(*gain, all[uuid]);
  }
  return all;
}

Result<void> keep_calibrations(const Calibrations& found) {
  return change_devices("the calibration", [&](json& devices) {
    for (const auto& [uuid, traits] : found) {
      json& device = devices[uuid];
      device["counter"] = to_json(traits.counter);
      device["ring"] = to_json(traits.ring);
      device["instant"] = to_json(traits.instant);
      device["average"] = to_json(traits.average);
    }
  });
}

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
