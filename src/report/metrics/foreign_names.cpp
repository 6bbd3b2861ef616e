#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "model/device/sensor.h"
#include "report/metrics/machine_metrics.h"

namespace jouleprof::report {
namespace {

using model::DomainSnapshot;

namespace gauge = model::gauge;
using analysis::EnergyAccounts;
using analysis::Family;
using analysis::MachineState;
using model::DomainKind;
using enum MetricType;

constexpr Metric kDcgmPower{"DCGM_FI_DEV_POWER_USAGE", kGauge, "", "Power draw (W).", ""};
constexpr Metric kDcgmEnergy{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", kCounter, "",
                             "Energy since the start of the service (mJ).", ""};

struct DcgmGauge {
  std::string_view gauge;
  double scale;
  Metric metric;
};
constexpr Metric gauge_of(std::string_view name, std::string_view help) {
  return {name, kGauge, "", help, ""};
}
constexpr std::array<DcgmGauge, 9> kDcgmGauges{{
    {gauge::kTemperature, 1, gauge_of("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (C).")},
    {gauge::kMemoryTemperature, 1, gauge_of("DCGM_FI_DEV_MEMORY_TEMP", "Memory temperature (C).")},
    {gauge::kSmClock, 1e-6, gauge_of("DCGM_FI_DEV_SM_CLOCK", "SM clock (MHz).")},
    {gauge::kMemoryClock, 1e-6, gauge_of("DCGM_FI_DEV_MEM_CLOCK", "Memory clock (MHz).")},
    {gauge::kGpuUtilisation, 100, gauge_of("DCGM_FI_DEV_GPU_UTIL", "GPU utilisation (%).")},
    {gauge::kMemoryUtilisation, 100,
     gauge_of("DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilisation (%).")},
    {gauge::kEncoderUtilisation, 100, gauge_of("DCGM_FI_DEV_ENC_UTIL", "Encoder utilisation (%).")},
    {gauge::kDecoderUtilisation, 100, gauge_of("DCGM_FI_DEV_DEC_UTIL", "Decoder utilisation (%).")},
    {gauge::kMemoryUsed, 1.0 / (1 << 20),
     gauge_of("DCGM_FI_DEV_FB_USED", "Frame buffer used (MiB).")},
}};

// A number without what its scale rounded: 1980, not 1980.0000000000002.
double rounded(double value) { return std::round(value * 1e3) * 1e-3; }

std::map<std::size_t, std::string> only_jobs(const MachineState& state) {
  std::map<std::size_t, std::set<std::string>> jobs;
  for (const auto& a : state.allocations) jobs[a.domain].insert(a.job);
  std::map<std::size_t, std::string> out;
  for (const auto& [domain, of] : jobs) {
    if (of.size() == 1) out[domain] = *of.begin();
  }
  return out;
}

std::string_view zone_of(DomainKind kind) {
  switch (kind) {
    case DomainKind::kCpu:
      return "package";
    case DomainKind::kDram:
      return "dram";
    case DomainKind::kCpuCores:
      return "core";
    case DomainKind::kCpuUncore:
      return "uncore";
    case DomainKind::kPlatform:
      return "psys";
    default:
      return {};
  }
}

class Kepler {
 public:
  Kepler(const MachineState& state, const EnergyAccounts& accounts, const MetricsOptions& options,
         Exposition& out)
      : state_(state), accounts_(accounts), options_(options), out_(out) {}

  void write() {
    node("cpu", false);
    node("cpu", true);
    node("gpu", false);
    node("gpu", true);
    cpu_info();
    for (const auto family : {Family::kProcess, Family::kContainer, Family::kPod}) {
      for (const bool gpu : {false, true}) entities(family, gpu);
    }
  }

 private:
  struct Sum {
    Energy energy;
    Power power;
    bool has_power = true;
  };

  bool is_counted(std::size_t d, bool gpu) const {
    const auto& s = state_.domains[d];
    const auto& domain = state_.snapshot.domains[d].domain;
    const bool fits =
        gpu ? domain.kind == DomainKind::kGpu && !domain.parent : !zone_of(domain.kind).empty();
    return fits && s.counted &&
           (options_.estimates || s.provenance != model::Provenance::kEstimated);
  }

  void begin(std::string_view of, std::string_view what, bool watts) {
    name_ = fmt::format("kepler_{}_{}_{}", of, what, watts ? "watts" : "joules_total");
    metric_ = {name_, watts ? kGauge : kCounter, watts ? "watts" : "joules",
               watts ? "Power, as Kepler names it." : "Energy, as Kepler names it.", ""};
    out_.begin(metric_);
  }

  // Dashboards take the names of nodes from it.
  void cpu_info() {
    metric_ = {"kepler_node_cpu_info", kGauge, "", "A logical CPU, as Kepler names it.", ""};
    out_.begin(metric_);
    const auto& domains = state_.snapshot.domains;
    const auto cpu = std::ranges::find_if(
        domains, [](const auto& d) { return d.domain.kind == DomainKind::kCpu; });
    if (cpu == domains.end()) return;
    for (unsigned i = 0; i < options_.cpus; ++i) {
      Labels labels;
      labels.add("processor", fmt::format("{}", i)).add("model_name", cpu->domain.name);
      out_.sample(labels.add("node_name", options_.host), 1.0);
    }
  }

  void node(std::string_view what, bool watts) {
    begin("node", what, watts);
    for (std::size_t d = 0; d < state_.domains.size(); ++d) {
      if (!is_counted(d, what == "gpu")) continue;
      const auto& s = state_.snapshot.domains[d];
      Labels labels;
      if (what == "gpu") {
        const auto index = model::gpu_index(s.domain);
        labels.add("gpu", index ? fmt::format("{}", *index) : s.domain.device);
        labels.add("gpu_uuid", s.domain.uuid);
      } else {
        labels.add("zone", zone_of(s.domain.kind)).add("path", s.domain.device);
      }
      labels.add("node_name", options_.host);
      if (!watts)
        out_.sample(labels, accounts_.domains()[d].total, state_.since(accounts_.domains()[d]));
      if (watts && s.power) out_.sample(labels, s.power->watts());
    }
  }

  // By zone; that of GPUs is empty.
  std::map<std::string_view, Sum> sums(const analysis::Entity& entity, bool gpu) const {
    std::map<std::string_view, Sum> out;
    for (std::size_t d = 0; d < entity.energies.size(); ++d) {
      const auto& series = entity.energies[d];
      if (!series || !is_counted(d, gpu) || !state_.domains[d].divided) continue;
      auto& sum = out[gpu ? "" : zone_of(state_.snapshot.domains[d].domain.kind)];
      if (options_.shows(*series)) sum.energy += series->energy;
      const auto power = accounts_.power(d, *series);
      if (power) sum.power += *power;
      sum.has_power &= power.has_value();
    }
    return out;
  }

  Labels labels_of(Family family, const std::string& key, const analysis::Entity& entity) const {
    const auto& owner = entity.worker.owner;
    const std::string_view state = entity.present == state_.now ? "running" : "terminated";
    Labels labels;
    if (family == Family::kProcess) {
      labels.add("pid", key).add("comm", entity.worker.name).add("state", state);
      labels.add("container_id", owner.container);
    } else if (family == Family::kContainer) {
      labels.add("container_id", key).add("runtime", owner.runtime).add("state", state);
      labels.add("pod_id", owner.pod);
      const auto name = state_.names.containers.find(key);
      if (name != state_.names.containers.end()) labels.add("container_name", name->second);
    } else {
      labels.add("pod_id", key).add("state", state);
      const auto name = state_.names.pods.find(key);
      if (name != state_.names.pods.end()) {
        labels.add("pod_name", name->second.name);
        labels.add("pod_namespace", name->second.name_space);
      }
    }
    return labels;
  }

  void entities(Family family, bool gpu) {
    const auto* const account = accounts_.family(family);
    if (account == nullptr) return;
    for (const bool watts : {false, true}) {
      begin(to_string(family), gpu ? "gpu" : "cpu", watts);
      for (const auto& [key, entity] : account->entities) {
        for (const auto& [zone, sum] : sums(entity, gpu)) {
          Labels labels = labels_of(family, key, entity);
          labels.add("zone", zone).add("node_name", options_.host);
          if (!watts) out_.sample(labels, sum.energy);
          if (watts && sum.has_power) out_.sample(labels, sum.power.watts());
        }
      }
    }
  }

  const MachineState& state_;
  const EnergyAccounts& accounts_;
  const MetricsOptions& options_;
  Exposition& out_;
  std::string name_;
  Metric metric_;
};

constexpr Metric kCpuPower = gauge_of("power_draw_cpu", "CPU packages (W).");
constexpr Metric kRaplPower = gauge_of("intel_power", "CPU packages and DRAM (W).");
constexpr Metric kGpuPower = gauge_of("power_draw_gpu", "GPUs (W).");
constexpr Metric kMemory = gauge_of("mem_used_cpu", "Memory in use (bytes).");
constexpr Metric kGpuMemory = gauge_of("mem_used_gpu", "GPU memory in use (bytes).");

// Over the domains of these kinds that are no part of another; absent if there are none, or if one
// of them has no value.
template <typename Value>
std::optional<double> sum(const MachineState& state, DomainKind kind, Value value) {
  std::optional<double> out;
  for (const auto& d : state.snapshot.domains) {
    if (d.domain.kind != kind || d.domain.parent) continue;
    const std::optional<double> one = value(d);
    if (!one) return std::nullopt;
    out = out.value_or(0) + *one;
  }
  return out;
}

void add(const Metric& metric, const std::optional<double>& value, Exposition& out) {
  out.begin(metric);
  if (value) out.sample({}, *value);
}

}  // namespace

void add_dcgm_names(const MachineState& state, const EnergyAccounts& accounts,
                    const MetricsOptions& options, Exposition& out) {
  const auto jobs = only_jobs(state);
  const auto each = [&](const Metric& metric, auto value) {
    out.begin(metric);
    for (std::size_t d = 0; d < state.domains.size(); ++d) {
      const auto& s = state.snapshot.domains[d];
      const auto index = model::gpu_index(s.domain);
      if (s.domain.kind != DomainKind::kGpu || s.domain.parent || !index) continue;
      const std::optional<double> number = value(d, s);
      if (!number) continue;
      Labels labels;
      labels.add("gpu", fmt::format("{}", *index)).add("UUID", s.domain.uuid);
      labels.add("device", fmt::format("nvidia{}", *index)).add("modelName", s.domain.name);
      // Before and since May 2026.
      labels.add("Hostname", options.host).add("hostname", options.host);
      const auto job = jobs.find(d);
      if (job != jobs.end()) labels.add("hpc_job", job->second);
      out.sample(labels, *number);
    }
  };
  each(kDcgmPower, [](std::size_t, const auto& s) {
    return s.power ? std::optional(s.power->watts()) : std::nullopt;
  });
  each(kDcgmEnergy, [&](std::size_t d, const auto&) -> std::optional<double> {
    if (!state.domains[d].counted) return std::nullopt;
    return static_cast<double>(accounts.domains()[d].total.microjoules()) / 1000;
  });
  for (const auto& g : kDcgmGauges) {
    each(g.metric, [&g](std::size_t, const auto& s) {
      const auto value = s.gauge(g.gauge);
      return value ? std::optional(rounded(*value * g.scale)) : std::nullopt;
    });
  }
}

void add_kepler_names(const MachineState& state, const EnergyAccounts& accounts,
                      const MetricsOptions& options, Exposition& out) {
  Kepler(state, accounts, options, out).write();
}

void add_aipowermeter_names(const MachineState& state, const MetricsOptions& options,
                            Exposition& out) {
  const auto power = [&](DomainKind kind) {
    return sum(state, kind, [&](const DomainSnapshot& d) -> std::optional<double> {
      const bool is_hidden = !options.estimates && d.provenance == model::Provenance::kEstimated;
      if (!d.power || is_hidden) return std::nullopt;
      return d.power->watts();
    });
  };
  const auto cpu = power(DomainKind::kCpu);
  const auto dram = power(DomainKind::kDram);
  add(kCpuPower, cpu, out);
  // DRAM without a sensor is not in the sum, as with RAPL.
  add(kRaplPower, cpu ? std::optional(*cpu + dram.value_or(0)) : std::nullopt, out);
  add(kGpuPower, power(DomainKind::kGpu), out);
  const auto& memory = state.memory_used_bytes;
  add(kMemory, memory ? std::optional(static_cast<double>(*memory)) : std::nullopt, out);
  add(kGpuMemory,
      sum(state, DomainKind::kGpu,
          [](const DomainSnapshot& d) { return d.gauge(model::gauge::kMemoryUsed); }),
      out);
}

}  // namespace jouleprof::report
