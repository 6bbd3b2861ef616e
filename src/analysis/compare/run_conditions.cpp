#include "analysis/compare/run_conditions.h"

#include <algorithm>
#include <string_view>

#include "model/clock_reasons.h"
#include "model/gauge_names.h"

namespace jouleprof::analysis {
namespace {

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  std::optional<double> value() const {
    return count_ > 0 ? std::optional(sum_ / static_cast<double>(count_)) : std::nullopt;
  }

 private:
  double sum_ = 0;
  std::size_t count_ = 0;
};

const model::Domain* visible_gpu(const model::Recording& recording, model::DomainId id) {
  for (const auto& domain : recording.domains) {
    const bool is_gpu = domain.kind == model::DomainKind::kGpu && !domain.parent;
    if (domain.id == id && is_gpu && domain.visible) return &domain;
  }
  return nullptr;
}

void read_gauges(const model::Recording& recording, const PartSpan& span, Conditions& out) {
  Mean clock;
  Mean heat;
  for (const auto& sensor : recording.sensors) {
    const auto* gpu = visible_gpu(recording, sensor.domain);
    if (sensor.kind != model::SensorKind::kGauge || gpu == nullptr) continue;
    Mean limit;
    std::optional<double> first_celsius;
    for (const auto& reading : recording.readings.gauges) {
      if (reading.sensor != sensor.id || !span.contains(reading.at)) continue;
      if (sensor.name == model::gauge::kSmClock) clock.add(reading.value * 1e-6);
      if (sensor.name == model::gauge::kPowerLimit) limit.add(reading.value);
      if (sensor.name == model::gauge::kTemperature && !first_celsius) {
        first_celsius = reading.value;
      }
      if (sensor.name == model::gauge::kClockEventReasons) {
        heat.add(model::ClockReasons::of_gauge(reading.value).limited_by_heat() ? 1 : 0);
      }
    }
    if (const auto watts = limit.value()) out.power_limits[gpu->device] = *watts;
    if (first_celsius) {
      out.start_celsius = std::max(out.start_celsius.value_or(*first_celsius), *first_celsius);
    }
  }
  out.sm_megahertz = clock.value();
  out.limited_by_heat = heat.value();
}

}  // namespace

Conditions conditions_of(const Run& run, const model::Profile& profile,
                         const std::vector<model::ActivityProfile>& activity) {
  Conditions out;
  if (const auto span = run.span()) read_gauges(run.recording(), *span, out);
  out.exit_status = profile.run.exit_status;
  out.complete = profile.run.complete;
  out.simulated = profile.simulated;
  out.traced = !run.recording().traces.empty();
  for (const auto& group : profile.windows) {
    if (!group.imported) out.work["windows " + group.name] += static_cast<double>(group.count);
  }
  for (const auto& device : activity) {
    for (const auto& row : device.by_layer) {
      const bool is_model = row.parent == model::kNone && row.count > 0;
      if (is_model) out.work["calls of " + row.name] += static_cast<double>(row.count);
    }
  }
  return out;
}

}  // namespace jouleprof::analysis
