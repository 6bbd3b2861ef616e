#include "report/html/power_json.h"

#include "report/quantity.h"

namespace jouleprof::report {
namespace {

Json watts_json(double watts) { return decimal(fixed_decimal(watts, 1)); }

Json step_json(const PowerTrack& track, Energy PowerTrack::Step::*energy) {
  Json list = Json::array();
  for (const auto& step : track.steps) {
    list.push_back(step ? Json(((*step).*energy).microjoules()) : Json(nullptr));
  }
  return list;
}

Json track_json(const PowerTrack& track, HostTime origin) {
  Json j = Json::object();
  j["id"] = static_cast<std::uint32_t>(track.id);
  j["begin_seconds"] = decimal(fixed_decimal(seconds(track.begin - origin), 6));
  j["end_seconds"] = decimal(fixed_decimal(seconds(track.end - origin), 6));
  j["step_seconds"] = decimal(fixed_decimal(seconds(track.step), 3));
  j["resolution_seconds"] = decimal(fixed_decimal(seconds(track.resolution), 3));
  j["energy_microjoules"] = step_json(track, &PowerTrack::Step::energy);
  j["error_microjoules"] = step_json(track, &PowerTrack::Step::error);
  j["repeatability_microjoules"] = step_json(track, &PowerTrack::Step::repeatability);
  j["calibration_ratio"] = number_json(track.calibration_ratio);
  if (track.extremes.empty()) return j;
  j["low_watts"] = Json::array();
  j["high_watts"] = Json::array();
  for (const auto& e : track.extremes) {
    j["low_watts"].push_back(e ? watts_json(e->first) : Json(nullptr));
    j["high_watts"].push_back(e ? watts_json(e->second) : Json(nullptr));
  }
  return j;
}

}  // namespace

Json power_json(const std::vector<PowerTrack>& tracks, HostTime origin) {
  Json list = Json::array();
  for (const auto& track : tracks) list.push_back(track_json(track, origin));
  return list;
}

}  // namespace jouleprof::report
