#include "analysis/compare/run_conditions.h"

#include <algorithm>
#include <string_view>

#include "model/device/clock_reasons.h"
#include "model/device/gauge_names.h"
#include "model/gauges.h"

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

void read_gauges(const model::Recording& recording, const PartSpan& span, Conditions& out) {
  Mean clock;
  Mean heat;
  for (const auto& gpu : recording.domains) {
    if (gpu.kind != model::DomainKind::kGpu || gpu.parent || !gpu.visible) continue;
    const auto readings = [&](std::string_view name) {
      return gauge_of(recording, gpu, name, span.begin, span.end);
    };
    for (const auto& r : readings(model::gauge::kSmClock)) clock.add(r.value * 1e-6);
    for (const auto& r : readings(model::gauge::kClockEventReasons)) {
      heat.add(model::ClockReasons::of_gauge(r.value).limited_by_heat() ? 1 : 0);
    }
    Mean limit;
    for (const auto& r : readings(model::gauge::kPowerLimit)) limit.add(r.value);
    if (const auto watts = limit.value()) out.power_limits[gpu.device] = *watts;
    const auto celsius = readings(model::gauge::kTemperature);
    if (!celsius.empty()) {
      const double first = celsius.front().value;
      out.start_celsius = std::max(out.start_celsius.value_or(first), first);
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
