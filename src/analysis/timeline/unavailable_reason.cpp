#include "analysis/timeline/unavailable_reason.h"

namespace jouleprof::analysis {

std::string unavailable_reason(const model::Recording& r, const model::Domain& domain) {
  if (!domain.unavailable_reason.empty()) return domain.unavailable_reason;
  for (const auto& f : r.readings.failures) {
    for (const auto& s : r.sensors) {
      if (s.id == f.sensor && s.domain == domain.id && s.kind != model::SensorKind::kGauge) {
        return f.error.message;
      }
    }
  }
  return "no reading was recorded";
}

}  // namespace jouleprof::analysis
