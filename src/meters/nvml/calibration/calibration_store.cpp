#include "meters/nvml/calibration/calibration_store.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "base/file.h"
#include "base/json/json_reader.h"

namespace jouleprof::meters::nvml {
namespace {

using model::SensorTraits;
using nlohmann::json;

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

}  // namespace

std::filesystem::path calibration_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state != '\0') {
    return std::filesystem::path(state) / "jouleprof/calibration.json";
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return std::filesystem::path(home) / ".local/state/jouleprof/calibration.json";
}

Calibrations read_calibrations() {
  Calibrations all;
  const auto path = calibration_path();
  const auto text = read_file(path, 1 << 20);
  if (!text) return all;
  const auto json = parse_json(*text, path.string());
  if (!json) return all;
  // A wrong value stays unknown; the next calibration replaces it.
  JsonErrors ignored{path.string()};
  JsonReader document(*json, "", ignored);
  document.object("devices", [&](JsonReader& devices) {
    for (const auto& [uuid, value] : devices.value().items()) {
      if (!value.is_object()) continue;
      JsonReader device(value, uuid, ignored);
      all[uuid] = {traits_at(device, "counter"), traits_at(device, "ring"),
                   traits_at(device, "instant"), traits_at(device, "average")};
    }
  });
  return all;
}

Result<void> keep_calibrations(const Calibrations& found) {
  const auto path = calibration_path();
  if (path.empty()) {
    return fail(
        Errc::kNotFound,
        "cannot store the calibration: neither XDG_STATE_HOME nor HOME is set. Set one of them");
  }
  auto all = read_calibrations();
  for (const auto& [uuid, traits] : found) all[uuid] = traits;
  json devices = json::object();
  for (const auto& [uuid, traits] : all) {
    devices[uuid] = {{"counter", to_json(traits.counter)},
                     {"ring", to_json(traits.ring)},
                     {"instant", to_json(traits.instant)},
                     {"average", to_json(traits.average)}};
  }
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  errno = 0;
  std::ofstream file(path, std::ios::trunc);
  file << json{{"schema", "jouleprof.calibration/1"}, {"devices", devices}}.dump(2) << '\n';
  file.close();
  if (!file)
    return tl::unexpected(system_error(fmt::format("cannot write {}", path.string()), errno));
  return {};
}

}  // namespace jouleprof::meters::nvml
