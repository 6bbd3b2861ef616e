#include "analysis/timeline/gauges.h"

#include <algorithm>

namespace jouleprof::analysis {

std::vector<model::GaugeReading> gauge_of(const model::Recording& recording,
                                          const model::Domain& domain, std::string_view name) {
  return gauge_of(recording, domain, name, HostTime::min(), HostTime::max());
}

std::vector<model::GaugeReading> gauge_of(const model::Recording& recording,
                                          const model::Domain& domain, std::string_view name,
                                          HostTime begin, HostTime end) {
  std::vector<model::GaugeReading> out;
  for (const auto& sensor : recording.sensors) {
    if (sensor.kind != model::SensorKind::kGauge || sensor.name != name) continue;
    if (sensor.domain != domain.id && sensor.domain != domain.parent) continue;
    for (const auto& r : recording.readings.gauges) {
      if (r.sensor == sensor.id && r.at >= begin && r.at <= end) out.push_back(r);
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  return out;
}

}  // namespace jouleprof::analysis
