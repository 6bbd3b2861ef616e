#include "analysis/kernels/clock_limits.h"

#include <algorithm>

#include "model/device/clock_reasons.h"
#include "model/device/gauge_names.h"
#include "model/gauges.h"

namespace jouleprof::analysis {

ClockLimits::ClockLimits(const model::Recording& recording, const model::Domain& domain) {
  std::optional<model::GaugeReading> last;
  for (const auto& r : gauge_of(recording, domain, model::gauge::kClockEventReasons)) {
    if (last) {
      const auto reasons = model::ClockReasons::of_gauge(last->value);
      const bool held = reasons.limited_by_power() || reasons.limited_by_heat();
      intervals_.push_back({last->at, r.at, held});
    }
    last = r;
  }
}

std::optional<double> ClockLimits::held_share(HostTime begin, HostTime end,
                                              const ReplayTime& replays) const {
  double held = 0;
  double all = 0;
  for (const Interval& s : intervals_) {
    if (s.end <= begin || s.begin >= end || replays.holds(s.begin)) continue;
    const double length = seconds(std::min(s.end, end) - std::max(s.begin, begin));
    all += length;
    if (s.held) held += length;
  }
  return all > 0 ? std::optional(held / all) : std::nullopt;
}

}  // namespace jouleprof::analysis
