#include "report/json/window_json.h"

#include <cmath>
#include <utility>

#include "model/window_mean.h"
#include "report/render.h"

namespace jouleprof::report {
namespace {

using model::Measurement;
using model::WindowEnergy;
using model::WindowGroup;

Json interval_json(const Measurement& m) {
  return Json::array({joules_json(m.low()), joules_json(m.high())});
}

Json energy_json(const WindowGroup& group, const WindowEnergy& e, const model::Domain& domain) {
  const bool has_sum = is_whole(group, e);  // a mean is a mean all the same
  Json j = Json::object();
  j["id"] = static_cast<std::uint32_t>(domain.id);
  j["domain"] = to_string(domain.kind);
  j["device"] = domain.device;
  j["count"] = e.count;
  j["provenance"] =
      group.imported
          ? Json(nullptr)
          : Json(to_string(e.energy ? e.energy->provenance : model::Provenance::kUnavailable));
  j["energy_joules"] = nullptr;
  j["interval_joules"] = nullptr;
  j["repeatability_joules"] = nullptr;
  j["mean_joules"] = nullptr;
  j["mean_interval_joules"] = nullptr;
  j["quartiles_joules"] =
      e.quartiles ? Json::array({joules_json(e.quartiles->lower), joules_json(e.quartiles->median),
                                 joules_json(e.quartiles->upper)})
                  : Json(nullptr);
  if (e.energy) {
    const Measurement mean = *mean_of(e);
    if (has_sum) {
      j["energy_joules"] = joules_json(e.energy->energy);
      j["interval_joules"] = interval_json(*e.energy);
      j["repeatability_joules"] = joules_json(e.energy->repeatability);
    }
    j["mean_joules"] = joules_json(mean.energy);
    j["mean_interval_joules"] = interval_json(mean);
  }
  if (e.reported) {
    if (has_sum) j["energy_joules"] = joules_json(*e.reported);
    j["mean_joules"] = joules_json(model::mean_of(*e.reported, e.count));
  }
  add_levels(j, has_sum ? e.levels : model::EnergyLevels{});
  j["sensor"] = e.energy ? text_json(e.energy->sensor) : Json(nullptr);
  j["method"] = e.energy ? text_json(e.energy->method) : Json(nullptr);
  j["reason"] = text_json(e.reason);
  return j;
}

}  // namespace

void add_levels(Json& to, const model::EnergyLevels& levels) {
  const auto add = [&](const std::string& name, const std::optional<Measurement>& m) {
    to[name + "_joules"] = m ? joules_json(m->energy) : Json(nullptr);
    to[name + "_interval_joules"] =
        m ? Json::array({joules_json(m->energy - m->error), joules_json(m->energy + m->error)})
          : Json(nullptr);
  };
  add("rest", levels.rest);
  add("held", levels.held);
  add("active", levels.active);
  to["levels_reason"] = text_json(levels.reason);
}

Json windows_json(const model::Profile& profile) {
  Json list = Json::array();
  for (const WindowGroup& group : profile.windows) {
    Json j = Json::object();
    j["name"] = group.name;
    j["imported"] = group.imported;
    j["labels"] = Json::array();
    for (const auto& [name, value] : group.labels) {
      Json label = Json::object();
      label["name"] = name;
      label["value"] = value;
      j["labels"].push_back(std::move(label));
    }
    j["count"] = group.count;
    j["total_seconds"] = seconds_json(group.total_time);
    j["mean_seconds"] = seconds_json(group.mean_time());
    const auto& times = group.time_quartiles;
    j["quartiles_seconds"] =
        times ? Json::array({seconds_json(times->lower), seconds_json(times->median),
                             seconds_json(times->upper)})
              : Json(nullptr);
    j["energy"] = Json::array();
    for (std::size_t d = 0; d < group.energies.size() && d < profile.domains.size(); ++d) {
      j["energy"].push_back(energy_json(group, group.energies[d], profile.domains[d].domain));
    }
    list.push_back(std::move(j));
  }
  return list;
}

std::string windows_to_json(const model::Profile& profile) {
  Json j = Json::object();
  j["schema"] = "jouleprof.windows/1";
  j["simulated"] = profile.simulated;
  j["windows"] = windows_json(profile);
  return write_json(j) + '\n';
}

}  // namespace jouleprof::report
