#include "apps/cli/doctor/unit_look.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "analysis/timeline/timeline.h"
#include "base/clock.h"

namespace jouleprof::cli {
namespace {

constexpr Duration kTime = std::chrono::milliseconds{2600};
constexpr Duration kCounterPeriod = std::chrono::milliseconds{100};  // each of its updates

struct Looked {
  meters::Meter* meter;
  model::DomainId domain;
  analysis::EnergyTimeline timeline;
};

struct Due {
  meters::Meter* meter;
  std::size_t probe;
  HostTime at;
};

std::vector<Looked> both_sensors(meters::MeterSet& meters) {
  std::vector<Looked> out;
  for (const auto& meter : meters.meters) {
    const std::vector<bool> all(meter->sensors().size(), true);
    for (const auto& domain : meter->domains()) {
      const auto chosen = analysis::choose_sensors(meter->sensors(), domain.id, all);
      if (!chosen || !chosen->counter || !chosen->power) continue;
      out.push_back({meter.get(), domain.id, analysis::EnergyTimeline(*chosen)});
    }
  }
  return out;
}

}  // namespace

UnitLooks look_at_units(meters::MeterSet& meters) {
  auto looked = both_sensors(meters);
  const HostTime begin = HostClock::now();
  std::vector<Due> due;
  for (const Looked& l : looked) {
    const bool is_new =
        std::none_of(due.begin(), due.end(), [&](const Due& d) { return d.meter == l.meter; });
    if (!is_new) continue;
    meters::Demand demand;
    demand.counter_period = kCounterPeriod;
    l.meter->set_demand(demand);
    for (std::size_t i = 0; i < l.meter->probes().size(); ++i) due.push_back({l.meter, i, begin});
  }
  model::Readings readings;
  while (!due.empty() && HostClock::now() - begin < kTime) {
    HostTime next = begin + kTime;
    for (Due& d : due) {
      if (HostClock::now() >= d.at) {
        readings.clear();
        d.at = d.meter->read(d.probe, readings);
        for (Looked& l : looked) {
          if (l.meter == d.meter) l.timeline.append(readings);
        }
      }
      next = std::min(next, d.at);
    }
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point(next.time_since_epoch()));
  }
  // The buffers' last samples.
  for (Due& d : due) {
    readings.clear();
    (void)d.meter->read(d.probe, readings);
    for (Looked& l : looked) {
      if (l.meter == d.meter) l.timeline.append(readings);
    }
  }
  UnitLooks out;
  for (Looked& l : looked) out[{l.meter, l.domain}] = analysis::unit_text(l.timeline.unit());
  return out;
}

}  // namespace jouleprof::cli
