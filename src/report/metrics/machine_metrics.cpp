#include "report/metrics/machine_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "model/device/sensor.h"

namespace jouleprof::report {
namespace {

namespace gauge = model::gauge;
using analysis::EnergyAccounts;
using analysis::Family;
using analysis::MachineState;
using model::DomainSnapshot;

constexpr std::string_view kDynamic = "dynamic";
constexpr std::string_view kRest = "rest";

struct GaugePart {
  std::string_view gauge;
  std::string_view value;
};
constexpr std::array<GaugePart, 2> kClocks{
    {{gauge::kSmClock, "sm"}, {gauge::kMemoryClock, "memory"}}};
constexpr std::array<GaugePart, 7> kUtilisations{{{gauge::kGpuUtilisation, "gpu"},
                                                  {gauge::kMemoryUtilisation, "memory"},
                                                  {gauge::kEncoderUtilisation, "encoder"},
                                                  {gauge::kDecoderUtilisation, "decoder"},
                                                  {gauge::kJpegUtilisation, "jpeg"},
                                                  {gauge::kOfaUtilisation, "ofa"},
                                                  {gauge::kCpuUtilisation, "cpu"}}};

// The label that names an entity of each family.
constexpr std::array<std::string_view, analysis::kFamilies> kKeys{"pid",     "container", "pod_uid",
                                                                  "hpc_job", "unit",      "uid"};

class Writer {
 public:
  Writer(const MachineState& state, const EnergyAccounts& accounts, const MetricsOptions& options,
         Dialect dialect)
      : state_(state), accounts_(accounts), options_(options), out_(dialect, options.created) {
    for (std::size_t i = 0; i < state.snapshot.domains.size(); ++i) {
      const auto& d = state.snapshot.domains[i].domain;
      Labels labels;
      labels.add("domain", model::to_string(d.kind)).add("device", d.device);
      Labels shares = labels;
      shares.add("provenance", model::to_string(state.domains[i].provenance));
      if (accounts.domains()[i].rest) shares.add("level", kDynamic);
      shares_.push_back(std::move(shares));
      domains_.push_back(labels.add("uuid", d.uuid));
    }
  }

  std::string write() && {
    energies();
    for (const auto family : analysis::kAllFamilies) entities(family);
    new_entities();
    powers();
    gauges();
    sensors();
    holders();
    information();
    service();
    if (options_.names.dcgm) add_dcgm_names(state_, accounts_, options_, out_);
    if (options_.names.kepler) add_kepler_names(state_, accounts_, options_, out_);
    if (options_.names.aipowermeter) add_aipowermeter_names(state_, options_, out_);
    return std::move(out_).finish();
  }

 private:
  std::size_t count() const { return domains_.size(); }
  const DomainSnapshot& domain(std::size_t i) const { return state_.snapshot.domains[i]; }
  void begin(std::string_view name) { out_.begin(metric(name)); }
  RealTime start() const { return state_.started.real; }

  bool is_shown(model::Provenance p) const {
    return options_.estimates || p != model::Provenance::kEstimated;
  }
  bool has_energy(std::size_t d) const {
    return state_.domains[d].counted && is_shown(state_.domains[d].provenance);
  }

  void energies() {
    begin("jouleprof_energy_joules_total");
    for (std::size_t d = 0; d < count(); ++d) {
      if (!has_energy(d)) continue;
      const auto& account = accounts_.domains()[d];
      const RealTime since = state_.since(account);
      Labels labels = domains_[d];
      labels.add("provenance", model::to_string(state_.domains[d].provenance));
      if (!account.rest) {
        out_.sample(labels, account.total, since);
        continue;
      }
      out_.sample(Labels(labels).add("level", kRest), *account.rest, since);
      out_.sample(labels.add("level", kDynamic), account.total - *account.rest, since);
    }
    begin("jouleprof_unattributed_energy_joules_total");
    for (std::size_t d = 0; d < count(); ++d) {
      if (!has_energy(d) || !state_.domains[d].divided) continue;
      out_.sample(
          Labels(domains_[d]).add("provenance", model::to_string(state_.domains[d].provenance)),
          accounts_.domains()[d].unattributed, state_.since(accounts_.domains()[d]));
    }
  }

  // nullptr: it is not shown.
  const analysis::FamilyAccount* shown(Family family) const {
    return options_.families[static_cast<std::size_t>(family)] ? accounts_.family(family) : nullptr;
  }

  void entities(Family family) {
    const auto* const account = shown(family);
    if (account == nullptr) return;
    begin(fmt::format("jouleprof_{}_energy_joules_total", to_string(family)));
    for (std::size_t d = 0; d < count(); ++d) {
      if (!has_energy(d) || !state_.domains[d].divided) continue;
      const Labels& tail = shares_[d];
      for (const auto& [key, entity] : account->entities) {
        const auto& series = entity.energies[d];
        if (!series) continue;
        out_.sample(with(kKeys[static_cast<std::size_t>(family)], key, tail),
                    options_.shows(*series) ? series->energy : Energy{},
                    state_.real(series->since));
      }
      const std::array<std::pair<std::string_view, Energy>, 4> rest{
          {{"outside", account->outside[d]},
           {"undivided", account->undivided[d]},
           {"other", account->other[d]},
           {"ended", account->ended[d]}}};
      for (const auto& [reason, energy] : rest) {
        out_.sample(with("reason", reason, tail), energy, state_.since(accounts_.domains()[d]));
      }
    }
  }

  // So that the parts sum to the whole at every scrape.
  void new_entities() {
    begin("jouleprof_new_energy_joules");
    for (const auto family : analysis::kAllFamilies) {
      const auto* const account = shown(family);
      for (std::size_t d = 0; account != nullptr && d < count(); ++d) {
        if (!has_energy(d) || !state_.domains[d].divided) continue;
        Energy sum;
        for (const auto& [key, entity] : account->entities) {
          const auto& series = entity.energies[d];
          if (series && !options_.shows(*series)) sum += series->energy;
        }
        out_.sample(with("family", to_string(family), shares_[d]), sum);
      }
    }
  }

  static Labels with(std::string_view name, std::string_view value, const Labels& tail) {
    Labels labels;
    labels.add(name, value).append(tail);
    return labels;
  }

  void powers() {
    begin("jouleprof_power_watts");
    for (std::size_t d = 0; d < count(); ++d) {
      const auto& s = domain(d);
      if (!s.power || !is_shown(s.provenance)) continue;
      out_.sample(Labels(domains_[d]).add("provenance", model::to_string(s.provenance)),
                  s.power->watts());
    }
  }

  void one(std::string_view name, std::string_view gauge) {
    begin(name);
    for (std::size_t d = 0; d < count(); ++d) {
      if (const auto value = domain(d).gauge(gauge)) out_.sample(domains_[d], *value);
    }
  }

  template <std::size_t n>
  void several(std::string_view name, std::string_view label,
               const std::array<GaugePart, n>& parts) {
    begin(name);
    for (std::size_t d = 0; d < count(); ++d) {
      for (const auto& part : parts) {
        const auto value = domain(d).gauge(part.gauge);
        if (value) out_.sample(Labels(domains_[d]).add(label, part.value), *value);
      }
    }
  }

  void temperatures() {
    begin("jouleprof_temperature_celsius");
    for (std::size_t d = 0; d < count(); ++d) {
      const bool is_cpu = domain(d).domain.kind == model::DomainKind::kCpu;
      const std::array<GaugePart, 2> parts{
          {{gauge::kTemperature, is_cpu ? "cpu" : "gpu"}, {gauge::kMemoryTemperature, "memory"}}};
      for (const auto& part : parts) {
        const auto value = domain(d).gauge(part.gauge);
        if (value) out_.sample(Labels(domains_[d]).add("part", part.value), *value);
      }
    }
  }

  void gauges() {
    one("jouleprof_power_limit_watts", gauge::kPowerLimit);
    several("jouleprof_clock_hertz", "clock", kClocks);
    temperatures();
    several("jouleprof_utilisation_ratio", "part", kUtilisations);
    one("jouleprof_memory_used_bytes", gauge::kMemoryUsed);
    begin("jouleprof_clock_limited");
    for (std::size_t d = 0; d < count(); ++d) {
      const auto bits = domain(d).gauge(gauge::kClockEventReasons);
      if (!bits) continue;
      const auto now = model::ClockReasons::of_gauge(*bits).names();
      for (const auto name : model::ClockReasons::all().names()) {
        const bool is_set = std::ranges::find(now, name) != now.end();
        out_.sample(Labels(domains_[d]).add("reason", name), is_set ? 1.0 : 0.0);
      }
    }
  }

  void sensors() {
    begin("jouleprof_sensor_age_seconds");
    for (std::size_t d = 0; d < count(); ++d) {
      if (domain(d).age) out_.sample(domains_[d], seconds(*domain(d).age));
    }
    begin("jouleprof_sensor_available");
    for (std::size_t d = 0; d < count(); ++d) {
      out_.sample(domains_[d], state_.domains[d].reported ? 1.0 : 0.0);
    }
    begin("jouleprof_energy_gaps_total");
    for (std::size_t d = 0; d < count(); ++d) {
      if (has_energy(d)) {
        out_.sample(domains_[d], static_cast<double>(state_.domains[d].gaps),
                    state_.since(accounts_.domains()[d]));
      }
    }
    begin("jouleprof_gap_joules_total");
    for (std::size_t d = 0; d < count(); ++d) {
      if (!has_energy(d) || state_.domains[d].between_services == Energy{}) continue;
      out_.sample(domains_[d], state_.domains[d].between_services,
                  state_.since(accounts_.domains()[d]));
    }
  }

  Labels gpu_labels(std::size_t d) const {
    Labels labels;
    labels.add("device", domain(d).domain.device).add("uuid", domain(d).domain.uuid);
    return labels;
  }

  void holders() {
    if (shown(Family::kProcess) == nullptr) return;
    begin("jouleprof_gpu_process_utilisation_ratio");
    for (const auto& h : state_.holders) {
      if (!h.utilisation) continue;
      out_.sample(gpu_labels(h.domain).add("pid", fmt::format("{}", h.worker.pid)), *h.utilisation);
    }
    begin("jouleprof_gpu_process_memory_bytes");
    for (const auto& h : state_.holders) {
      if (!h.memory_bytes) continue;
      out_.sample(gpu_labels(h.domain).add("pid", fmt::format("{}", h.worker.pid)),
                  static_cast<double>(*h.memory_bytes));
    }
  }

  static bool has_series(const analysis::Entity& entity) {
    return std::ranges::any_of(entity.energies,
                               [](const auto& series) { return series.has_value(); });
  }

  void information() {
    begin("jouleprof_device_info");
    for (std::size_t d = 0; d < count(); ++d) {
      out_.sample(Labels(domains_[d]).add("name", domain(d).domain.name), 1.0);
    }
    begin("jouleprof_process_info");
    if (const auto* const account = shown(Family::kProcess)) {
      for (const auto& [key, entity] : account->entities) {
        if (!has_series(entity)) continue;
        const auto& owner = entity.worker.owner;
        Labels labels;
        labels.add("pid", key).add("comm", entity.worker.name).add("container", owner.container);
        labels.add("pod_uid", owner.pod).add("hpc_job", owner.job).add("unit", owner.unit);
        if (owner.user) labels.add("uid", fmt::format("{}", *owner.user));
        out_.sample(labels, 1.0);
      }
    }
    begin("jouleprof_container_info");
    if (const auto* const account = shown(Family::kContainer)) {
      for (const auto& [key, entity] : account->entities) {
        if (!has_series(entity)) continue;
        const auto& owner = entity.worker.owner;
        Labels labels;
        labels.add("container", key).add("runtime", owner.runtime).add("pod_uid", owner.pod);
        const auto name = state_.names.containers.find(key);
        if (name != state_.names.containers.end()) labels.add("container_name", name->second);
        out_.sample(labels.add("hpc_job", owner.job), 1.0);
      }
    }
    begin("jouleprof_pod_info");
    if (const auto* const account = shown(Family::kPod)) {
      for (const auto& [key, entity] : account->entities) {
        const auto name = state_.names.pods.find(key);
        if (!has_series(entity) || name == state_.names.pods.end()) continue;
        Labels labels;
        labels.add("pod_uid", key).add("namespace", name->second.name_space);
        out_.sample(labels.add("pod", name->second.name), 1.0);
      }
    }
    begin("jouleprof_allocation_info");
    for (const auto& a : state_.allocations) {
      Labels labels = gpu_labels(a.domain);
      if (a.instance) labels.add("gpu_instance", fmt::format("{}", *a.instance));
      out_.sample(labels.add("hpc_job", a.job), 1.0);
    }
  }

  static double unix_seconds(RealTime t) {
    return static_cast<double>(t.time_since_epoch().count() / 1'000'000) * 1e-3;
  }

  void alone(std::string_view name, double value, std::optional<RealTime> since = {}) {
    begin(name);
    out_.sample({}, value, since);
  }

  void service() {
    alone("jouleprof_ticks_total", static_cast<double>(state_.ticks), start());
    alone("jouleprof_missing_seconds_total", seconds(state_.missing_time), start());
    alone("jouleprof_last_tick_timestamp_seconds", unix_seconds(state_.snapshot.time));
    begin("jouleprof_build_info");
    out_.sample(Labels().add("version", options_.version), 1.0);
    alone("process_cpu_seconds_total", seconds(state_.cost.cpu_time), start());
    alone("process_resident_memory_bytes", static_cast<double>(state_.cost.resident_bytes));
    alone("process_start_time_seconds", unix_seconds(start()));
  }

  const MachineState& state_;
  const EnergyAccounts& accounts_;
  const MetricsOptions& options_;
  Exposition out_;
  std::vector<Labels> domains_;  // domain, device, uuid
  std::vector<Labels> shares_;   // of entities: domain, device, provenance, level
};

}  // namespace

std::string machine_metrics(const MachineState& state, const EnergyAccounts& accounts,
                            const MetricsOptions& options, Dialect dialect) {
  return Writer(state, accounts, options, dialect).write();
}

}  // namespace jouleprof::report
