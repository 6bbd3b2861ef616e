#include "report/json/snapshot_json.h"

#include "base/text.h"
#include "report/json/json_text.h"
#include "report/quantity.h"
#include "report/snapshot.h"

namespace jouleprof::report {
namespace {

Json device_json(const model::DomainSnapshot& d) {
  const auto& m = d.energy;
  Json device = Json::object();
  device["domain"] = to_string(d.domain.kind);
  device["device"] = d.domain.device;
  device["name"] = text_json(d.domain.name);
  device["provenance"] = to_string(d.provenance);
  device["energy_joules"] = m ? joules_json(m->energy) : Json(nullptr);
  device["interval_joules"] =
      m ? Json::array({joules_json(m->low()), joules_json(m->high())}) : Json(nullptr);
  device["repeatability_joules"] = m ? joules_json(m->repeatability) : Json(nullptr);
  device["energy_seconds"] = m ? seconds_json(d.energy_end - d.energy_begin) : Json(nullptr);
  device["sensor"] = m ? text_json(m->sensor) : Json(nullptr);
  device["method"] = m ? text_json(m->method) : Json(nullptr);
  device["reason"] = text_json(d.reason);
  device["age_seconds"] = optional_json(d.age, seconds_json);
  for (const auto name : snapshot_figures()) {
    const auto value = figure_of(d, name);
    device[std::string(name)] = value ? decimal(shortest(*value)) : Json(nullptr);
  }
  device["clock_limits"] = optional_json(clock_limits_of(d));
  return device;
}

Json document(const model::Snapshot& snapshot,
              const std::vector<const model::DomainSnapshot*>& of) {
  Json line = Json::object();
  line["schema"] = "jouleprof.snapshot/2";
  line["time"] = utc_text(snapshot.time);
  line["time_unix_seconds"] = seconds_json(snapshot.time.time_since_epoch());
  line["elapsed_seconds"] = seconds_json(snapshot.elapsed);
  line["devices"] = Json::array();
  for (const auto* domain : of) line["devices"].push_back(device_json(*domain));
  return line;
}

}  // namespace

std::string snapshot_json_line(const model::Snapshot& snapshot) {
  return write_json(document(snapshot, rows_of(snapshot)), 0) + '\n';
}

std::string snapshot_json(const model::Snapshot& snapshot) {
  std::vector<const model::DomainSnapshot*> all;
  for (const auto& domain : snapshot.domains) all.push_back(&domain);
  return write_json(document(snapshot, all), 0);
}

}  // namespace jouleprof::report
