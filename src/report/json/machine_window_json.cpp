#include "report/json/machine_window_json.h"

#include <optional>

#include "report/json/json_text.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

Json device_json(const model::Domain& domain, const Result<model::Measurement>& energy,
                 bool estimates) {
  const bool is_hidden =
      energy && !estimates && energy->provenance == model::Provenance::kEstimated;
  const auto* const m = energy && !is_hidden ? &*energy : nullptr;
  Json out = Json::object();
  out["domain"] = to_string(domain.kind);
  out["device"] = domain.device;
  out["uuid"] = text_json(domain.uuid);
  out["provenance"] = to_string(m ? m->provenance : model::Provenance::kUnavailable);
  out["energy_joules"] = m ? joules_json(m->energy) : Json(nullptr);
  out["interval_joules"] =
      m ? Json::array({joules_json(m->low()), joules_json(m->high())}) : Json(nullptr);
  out["repeatability_joules"] = m ? joules_json(m->repeatability) : Json(nullptr);
  out["sensor"] = m ? text_json(m->sensor) : Json(nullptr);
  out["method"] = m ? text_json(m->method) : Json(nullptr);
  out["reason"] = m           ? Json(nullptr)
                  : is_hidden ? Json("it is estimated, and estimates are switched off")
                              : Json(energy.error().message);
  return out;
}

Json time_json(const analysis::MachineState& state, const std::optional<HostTime>& t) {
  return t ? Json(utc_text(state.real(*t))) : Json(nullptr);
}

}  // namespace

std::string machine_window_json(const analysis::MachineWindow& window,
                                const analysis::MachineState& state, bool estimates) {
  Json out = Json::object();
  out["schema"] = "jouleprof.window/1";
  out["name"] = window.name;
  out["begin"] = time_json(state, window.begin);
  out["end"] = time_json(state, window.end);
  out["duration_seconds"] = window.end ? seconds_json(*window.end - window.begin) : Json(nullptr);
  out["settled"] = window.is_settled;
  out["devices"] = Json::array();
  for (std::size_t d = 0; d < window.energies.size(); ++d) {
    out["devices"].push_back(
        device_json(state.snapshot.domains[d].domain, window.energies[d], estimates));
  }
  return write_json(out, 0) + "\n";
}

}  // namespace jouleprof::report
