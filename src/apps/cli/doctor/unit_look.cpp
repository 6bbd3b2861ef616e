#include <algorithm>
#include <chrono>
#include <vector>

#include "analysis/timeline/timeline.h"
#include "apps/cli/doctor/doctor.h"
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
  std::vector<meters::Meter*> read;
  for (const Looked& l : looked) {
    if (std::find(read.begin(), read.end(), l.meter) != read.end()) continue;
    meters::Demand demand;
    demand.counter_period = kCounterPeriod;
    l.meter->set_demand(demand);
    read.push_back(l.meter);
  }
  if (read.empty()) return {};
  const auto append = [&](meters::Meter& meter, const model::Readings& readings) {
    for (Looked& l : looked) {
      if (l.meter == &meter) l.timeline.append(readings);
    }
  };
  read_for(read, kTime, append);
  read_for(read, Duration{}, append);  // the buffers' last samples
  UnitLooks out;
  for (Looked& l : looked) out[{l.meter, l.domain}] = analysis::unit_text(l.timeline.unit());
  return out;
}

}  // namespace jouleprof::cli
