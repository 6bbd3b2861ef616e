#include "model/gauges.h"

#include <algorithm>

namespace jouleprof::model {

std::vector<GaugeReading> gauge_of(const Recording& recording, const Domain& domain,
                                   std::string_view name) {
  return gauge_of(recording, domain, name, HostTime::min(), HostTime::max());
}

std::vector<GaugeReading> gauge_of(const Recording& recording, const Domain& domain,
                                   std::string_view name, HostTime begin, HostTime end) {
  std::vector<GaugeReading> out;
  for (const auto& sensor : recording.sensors) {
    if (sensor.kind != SensorKind::kGauge || sensor.name != name) continue;
    if (sensor.domain != domain.id && sensor.domain != domain.parent) continue;
    for (const auto& r : recording.readings.gauges) {
      if (r.sensor == sensor.id && r.at >= begin && r.at <= end) out.push_back(r);
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  return out;
}

}  // namespace jouleprof::model
