#include "report/json/live_json.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "base/text.h"
#include "report/json/records.h"
#include "report/json/values.h"
#include "report/quantity.h"
#include "report/snapshot.h"

namespace jouleprof::report {
namespace {

using analysis::EnergyAccounts;
using analysis::Family;
using analysis::MachineState;

class Document {
 public:
  Document(const MachineState& state, const EnergyAccounts& accounts,
           const MachineJsonOptions& options)
      : state_(state), accounts_(accounts), options_(options) {}

  Json write() const {
    Json out = Json::object();
    out["schema"] = "jouleprof.machine/1";
    out["tool_version"] = options_.version;
    out["host"] = text_json(std::string(options_.host));
    out["time"] = utc_text(state_.snapshot.time);
    out["time_unix_seconds"] = seconds_json(state_.snapshot.time.time_since_epoch());
    out["since"] = utc_text(state_.started.real);
    out["elapsed_seconds"] = seconds_json(state_.now - state_.started.host);
    out["today_since"] = optional_json(state_.day.begin, utc_text);
    out["ticks"] = state_.ticks;
    out["devices"] = Json::array();
    for (std::size_t d = 0; d < state_.domains.size(); ++d) out["devices"].push_back(device(d));
    out["families"] = Json::object();
    for (const auto family : analysis::kAllFamilies) {
      if (accounts_.family(family) == nullptr) continue;
      out["families"][std::string(to_string(family))] = entities(*accounts_.family(family), family);
    }
    out["allocations"] = list_json(state_.allocations, [&](const auto& a) -> Json {
      return {{"device", state_.snapshot.domains[a.domain].domain.device},
              {"gpu_instance", optional_json(a.instance)},
              {"job", text_json(a.job)}};
    });
    out["warnings"] = list_json(state_.warnings, text_json);
    out["own_cpu_seconds"] = seconds_json(state_.cost.cpu_time);
    out["own_memory_bytes"] = state_.cost.resident_bytes;
    return out;
  }

 private:
  bool is_shown(std::size_t d) const {
    return options_.estimates || state_.domains[d].provenance != model::Provenance::kEstimated;
  }
  bool is_divided(std::size_t d) const {
    return state_.domains[d].counted && state_.domains[d].divided && is_shown(d);
  }

  Json device(std::size_t d) const {
    const auto& s = state_.snapshot.domains[d];
    const auto& account = accounts_.domains()[d];
    const bool counted = state_.domains[d].counted && is_shown(d);
    Json out = Json::object();
    out["domain"] = to_string(s.domain.kind);
    out["device"] = s.domain.device;
    out["name"] = text_json(s.domain.name);
    out["uuid"] = text_json(s.domain.uuid);
    out["provenance"] =
        to_string(counted ? state_.domains[d].provenance : model::Provenance::kUnavailable);
    out["divided"] = state_.domains[d].divided;
    out["energy_joules"] = counted ? joules_json(account.total) : Json(nullptr);
    const auto& m = s.energy;
    out["error_ratio"] = counted && m && m->energy > Energy{}
                             ? number_json(m->farthest().joules() / m->energy.joules())
                             : Json(nullptr);
    out["today_joules"] =
        counted && state_.day.begin ? joules_json(state_.day.energy(d, account)) : Json(nullptr);
    out["rest_joules"] = counted && account.rest ? joules_json(*account.rest) : Json(nullptr);
    out["unattributed_joules"] = is_divided(d) ? joules_json(account.unattributed) : Json(nullptr);
    const std::string silent = state_.domains[d].reported ? "" : state_.domains[d].reason;
    out["reason"] = text_json(counted ? silent : reason(d));
    out["available"] = state_.domains[d].reported;
    out["gaps"] = state_.domains[d].gaps;
    out["age_seconds"] = optional_json(s.age, seconds_json);
    for (const auto name : snapshot_figures()) {
      const auto value = is_shown(d) ? figure_of(s, name) : std::nullopt;
      out[std::string(name)] = value ? decimal(shortest(*value)) : Json(nullptr);
    }
    out["clock_limits"] = optional_json(clock_limits_of(s));
    return out;
  }

  std::string reason(std::size_t d) const {
    const auto& s = state_.snapshot.domains[d];
    if (!is_shown(d)) return "it is estimated, and estimates are switched off";
    if (!s.domain.unavailable_reason.empty()) return s.domain.unavailable_reason;
    if (!state_.domains[d].reason.empty()) return state_.domains[d].reason;
    return s.reason.empty() ? "its sensors have not reported yet" : s.reason;
  }

  Energy total(const analysis::Entity& entity) const {
    Energy sum;
    for (std::size_t d = 0; d < entity.energies.size(); ++d) {
      if (entity.energies[d] && is_divided(d)) sum += entity.energies[d]->energy;
    }
    return sum;
  }

  // Of all domains that were charged in the latest tick; absent where one was not.
  std::optional<Power> power(const analysis::Entity& entity) const {
    Power sum;
    for (std::size_t d = 0; d < entity.energies.size(); ++d) {
      if (!entity.energies[d] || !is_divided(d)) continue;
      const auto part = accounts_.power(d, *entity.energies[d]);
      if (!part) return std::nullopt;
      sum += *part;
    }
    return sum;
  }

  Json by_device(const std::function<std::optional<Energy>(std::size_t)>& energy) const {
    Json out = Json::object();
    for (std::size_t d = 0; d < state_.domains.size(); ++d) {
      const auto value = is_divided(d) ? energy(d) : std::nullopt;
      if (!value) continue;
      const auto& domain = state_.snapshot.domains[d].domain;
      out[domain.kind == model::DomainKind::kDram ? "dram " + domain.device : domain.device] =
          joules_json(*value);
    }
    return out;
  }

  Json entities(const analysis::FamilyAccount& account, Family family) const {
    struct Row {
      Energy energy;
      const std::string* key;
      const analysis::Entity* entity;
    };
    std::vector<Row> rows;
    for (const auto& [key, entity] : account.entities) {
      const Energy energy = total(entity);
      if (energy > Energy{}) rows.push_back({energy, &key, &entity});
    }
    const auto shown = std::min(rows.size(), options_.most);
    std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(shown), rows.end(),
                      [](const Row& a, const Row& b) {
                        return a.energy != b.energy ? a.energy > b.energy : *a.key < *b.key;
                      });
    Json out = Json::object();
    out["count"] = rows.size();
    out["entities"] = Json::array();
    for (std::size_t i = 0; i < shown; ++i) out["entities"].push_back(entity_json(rows[i], family));
    out["unlisted_joules"] = by_device([&](std::size_t d) {
      Energy sum;
      for (std::size_t i = shown; i < rows.size(); ++i) {
        if (const auto& series = rows[i].entity->energies[d]) sum += series->energy;
      }
      return sum;
    });
    out["outside_joules"] = by_device([&](std::size_t d) { return account.outside[d]; });
    out["undivided_joules"] = by_device([&](std::size_t d) { return account.undivided[d]; });
    out["other_joules"] = by_device([&](std::size_t d) { return account.other[d]; });
    out["ended_joules"] = by_device([&](std::size_t d) { return account.ended[d]; });
    return out;
  }

  template <typename Row>
  Json entity_json(const Row& row, Family family) const {
    const auto& worker = row.entity->worker;
    const auto& owner = worker.owner;
    Json out = Json::object();
    out["id"] = text_json(*row.key);
    out["energy_joules"] = joules_json(row.energy);
    out["joules"] = by_device([&](std::size_t d) -> std::optional<Energy> {
      const auto& series = row.entity->energies[d];
      return series ? std::optional(series->energy) : std::nullopt;
    });
    out["power_watts"] =
        optional_json(power(*row.entity), [](Power p) { return number_json(p.watts()); });
    out["present"] = row.entity->present == state_.now;
    if (family == Family::kProcess) out["name"] = text_json(worker.name);
    if (family == Family::kContainer) {
      const auto name = state_.names.containers.find(*row.key);
      out["name"] = text_json(name != state_.names.containers.end() ? name->second : "");
      out["runtime"] = text_json(owner.runtime);
    }
    if (family == Family::kPod) {
      const auto name = state_.names.pods.find(*row.key);
      const bool is_known = name != state_.names.pods.end();
      out["name"] = text_json(is_known ? name->second.name : "");
      out["namespace"] = text_json(is_known ? name->second.name_space : "");
    }
    if (family == Family::kProcess || family == Family::kContainer) {
      out["pod"] = text_json(owner.pod);
      out["job"] = text_json(owner.job);
    }
    if (family == Family::kProcess) out["container"] = text_json(owner.container);
    return out;
  }

  const MachineState& state_;
  const EnergyAccounts& accounts_;
  const MachineJsonOptions& options_;
};

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

Json device_json(const model::DomainSnapshot& d) {
  Json device = record_json(d);
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
  line["devices"] = list_json(of, [](const auto* domain) { return device_json(*domain); });
  return line;
}

}  // namespace

std::string machine_json(const MachineState& state, const EnergyAccounts& accounts,
                         const MachineJsonOptions& options) {
  return write_json(Document(state, accounts, options).write(), 0);
}

std::string machine_window_json(const analysis::MachineWindow& window,
                                const analysis::MachineState& state, bool estimates) {
  Json out = Json::object();
  out["schema"] = "jouleprof.window/1";
  out["name"] = window.name;
  out["begin"] = utc_text(window.begin_time);
  out["end"] = window.end ? Json(utc_text(window.end_time)) : Json(nullptr);
  out["duration_seconds"] = window.end ? seconds_json(*window.end - window.begin) : Json(nullptr);
  out["settled"] = window.is_settled;
  out["devices"] = Json::array();
  for (std::size_t d = 0; d < window.energies.size(); ++d) {
    out["devices"].push_back(
        device_json(state.snapshot.domains[d].domain, window.energies[d], estimates));
  }
  return write_json(out, 0) + "\n";
}

void columns(const model::DomainSnapshot& d, Columns& column) {
  const auto& m = d.energy;
  column("domain", to_string(d.domain.kind), "as `domains[].domain`");
  column("device", d.domain.device, "as `domains[].device`");
  column("name", d.domain.name, "the product's name", "it is unknown");
  column(
      "provenance", d.provenance,
      "the weakest provenance of energy and power; before the first reading that of the sensors");
  column("energy_joules", m ? std::optional(m->energy) : std::nullopt,
         "energy since the monitor started, or since the device's first reading, up to the newest "
         "instant that its sensors have reported",
         "it is unknown");
  column("interval_joules", bounds_of(m), "[low, high]: the true energy lies within at 95 %",
         "there is no energy");
  column("repeatability_joules", m ? std::optional(m->repeatability) : std::nullopt,
         "half of the interval without the sensor's calibration error", "there is no energy");
  column("energy_seconds", m ? std::optional(d.energy_end - d.energy_begin) : std::nullopt,
         "the time over which the energy is counted", "there is no energy");
  column("sensor", m ? std::string_view(m->sensor) : "", "as `domains[].sensor`",
         "there is no energy");
  column("method", m ? std::string_view(m->method) : "", "as `domains[].method`",
         "there is no energy");
  column("reason", d.reason, "why there is no energy", "there is one");
  column("age_seconds", d.age, "time since the newest reading of energy or power",
         "there was none yet");
}

std::vector<RecordKind> snapshot_kinds() {
  return {record_kind("devices[].", "snapshot_device", model::DomainSnapshot{})};
}

std::string snapshot_json_line(const model::Snapshot& snapshot) {
  return write_json(document(snapshot, rows_of(snapshot)), 0) + '\n';
}

std::string snapshot_json(const model::Snapshot& snapshot) {
  std::vector<const model::DomainSnapshot*> all;
  for (const auto& domain : snapshot.domains) all.push_back(&domain);
  return write_json(document(snapshot, all), 0);
}

}  // namespace jouleprof::report
