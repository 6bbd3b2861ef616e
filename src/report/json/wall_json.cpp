#include "report/json/wall_json.h"

namespace jouleprof::report {

Json wall_json(const WallComparison& wall) {
  Json j = Json::object();
  j["host"] = text_json(wall.host);
  j["file"] = text_json(wall.log.file);
  j["format"] = wall.log.format;
  j["column"] = text_json(wall.log.column);
  j["readings"] = wall.wall.readings;
  j["longest_pause_seconds"] = seconds_json(wall.wall.longest_pause);
  j["covered_seconds"] = seconds_json(wall.wall.end - wall.wall.begin);
  j["uncovered_seconds"] = seconds_json(wall.uncovered);
  j["energy_joules"] = joules_json(wall.wall.energy);
  j["mean_watts"] =
      number_json(wall.wall.energy.joules() / seconds(wall.wall.end - wall.wall.begin));
  const auto& sum = wall.components;
  j["components"] = wall.domains;
  j["components_joules"] = sum ? joules_json(sum->energy) : Json(nullptr);
  j["components_error_joules"] = sum ? joules_json(sum->error) : Json(nullptr);
  j["explained_ratio"] = optional_json(wall.explained(), number_json);
  j["unexplained_joules"] = sum ? joules_json(wall.wall.energy - sum->energy) : Json(nullptr);
  j["warnings"] = wall.log.warnings;
  return j;
}

}  // namespace jouleprof::report
