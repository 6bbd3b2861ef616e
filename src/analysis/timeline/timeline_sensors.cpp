#include "analysis/timeline/timeline_sensors.h"

#include <algorithm>
#include <string_view>

#include "model/device/gauge_names.h"

namespace jouleprof::analysis {

std::optional<TimelineSensors> choose_sensors(const std::vector<model::Sensor>& sensors,
                                              model::DomainId domain,
                                              const std::vector<bool>& has_readings) {
  using model::SensorKind;
  const auto first = [&](SensorKind kind, bool measured_only) -> std::optional<model::Sensor> {
    for (std::size_t i = 0; i < sensors.size(); ++i) {
      const auto& s = sensors[i];
      if (s.domain != domain || s.kind != kind || !has_readings[i]) continue;
      if (measured_only && s.provenance == model::Provenance::kEstimated) continue;
      return s;
    }
    return std::nullopt;
  };
  TimelineSensors out;
  out.counter = first(SensorKind::kEnergyCounter, true);
  const bool measured = out.counter.has_value();
  if (!measured) out.counter = first(SensorKind::kEnergyCounter, false);
  for (const bool measured_only : {true, false}) {
    for (const auto kind :
         {SensorKind::kPowerRing, SensorKind::kPowerInstant, SensorKind::kPowerAverage}) {
      if (!out.power) out.power = first(kind, measured_only || measured);
    }
  }
  if (out.power && !measured && out.power->provenance != model::Provenance::kEstimated) {
    out.counter.reset();  // an estimated counter adds nothing to measured power
  }
  if (!out.counter && !out.power) return std::nullopt;
  if (out.power && out.power->kind != SensorKind::kPowerAverage) {
    out.average = first(SensorKind::kPowerAverage, true);
    if (out.average && !out.average->traits.window) out.average.reset();
  }
  const auto gauge = [&](std::string_view name) -> std::optional<model::SensorId> {
    const auto s = std::find_if(sensors.begin(), sensors.end(), [&](const model::Sensor& x) {
      return x.domain == domain && x.kind == SensorKind::kGauge && x.name == name;
    });
    return s == sensors.end() ? std::nullopt : std::optional(s->id);
  };
  out.limit = gauge(model::gauge::kPowerLimit);
  out.utilisation = gauge(model::gauge::kGpuUtilisation);
  return out;
}

}  // namespace jouleprof::analysis
