#include "meters/nvml/calibration/calibration_store.h"

#include <optional>

#include "base/json/json_reader.h"
#include "meters/nvml/calibration/calibration_file.h"

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

}  // namespace jouleprof::meters::nvml
