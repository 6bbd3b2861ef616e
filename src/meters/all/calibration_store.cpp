#include "meters/all/calibration_store.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace jouleprof::meters {
namespace {

using model::SensorTraits;
using nlohmann::json;

std::optional<Duration> duration_at(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number()) return std::nullopt;
  const double s = it->get<double>();
  if (!(s >= 0 && s < 100)) return std::nullopt;
  return duration_of(s);
}

SensorTraits traits_at(const json& object, const char* key) {
  SensorTraits traits;
  const auto it = object.find(key);
  if (it == object.end() || !it->is_object()) return traits;
  traits.refresh = duration_at(*it, "refresh_seconds");
  traits.window = duration_at(*it, "window_seconds");
  traits.lag = duration_at(*it, "lag_seconds");
  traits.rise = duration_at(*it, "rise_seconds");
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

nvml::Calibrations read_calibrations() {
  nvml::Calibrations all;
  const auto text = read_file(calibration_path(), 1 << 20);
  if (!text) return all;
  const json document = json::parse(*text, nullptr, false);
  if (!document.is_object() || !document.contains("devices") || !document["devices"].is_object()) {
    return all;
  }
  for (const auto& [uuid, device] : document["devices"].items()) {
    if (!device.is_object()) continue;
    all[uuid] = {traits_at(device, "counter"), traits_at(device, "ring"),
                 traits_at(device, "instant"), traits_at(device, "average")};
  }
  return all;
}

Result<void> keep_calibrations(const nvml::Calibrations& found) {
  const auto path = calibration_path();
  if (path.empty()) {
    return fail(Errc::kNotFound,
                "neither XDG_STATE_HOME nor HOME is set: nowhere to keep the result");
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

}  // namespace jouleprof::meters
