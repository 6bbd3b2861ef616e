#include <array>
#include <optional>

#include "model/device/gauge_names.h"
#include "report/openmetrics/foreign_names.h"

namespace jouleprof::report {
namespace {

using analysis::MachineState;
using model::DomainKind;
using model::DomainSnapshot;

constexpr Metric kCpuPower{"power_draw_cpu", MetricType::kGauge, "", "CPU packages (W).", ""};
constexpr Metric kRaplPower{"intel_power", MetricType::kGauge, "", "CPU packages and DRAM (W).",
                            ""};
constexpr Metric kGpuPower{"power_draw_gpu", MetricType::kGauge, "", "GPUs (W).", ""};
constexpr Metric kMemory{"mem_used_cpu", MetricType::kGauge, "", "Memory in use (bytes).", ""};
constexpr Metric kGpuMemory{"mem_used_gpu", MetricType::kGauge, "", "GPU memory in use (bytes).",
                            ""};

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
