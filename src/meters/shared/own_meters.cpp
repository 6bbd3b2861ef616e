#include "meters/shared/own_meters.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace jouleprof::meters::shared {
namespace {

bool is_same(const model::Domain& a, const model::Domain& b) {
  if (a.kind != b.kind) return false;
  return a.uuid.empty() ? a.device == b.device && b.uuid.empty() : a.uuid == b.uuid;
}

// The powers of a model are means over its own period.
bool is_same(const model::Sensor& a, const model::Sensor& b) {
  return a.kind == b.kind && a.name == b.name && a.provenance == b.provenance &&
         (a.provenance != model::Provenance::kEstimated || a.traits.window == b.traits.window);
}

template <typename T, typename Id>
void move_renumbered(std::vector<T>& from, std::vector<T>& to, Id T::*id,
                     const std::vector<std::optional<Id>>& map) {
  for (auto& item : from) {
    const auto own = static_cast<std::size_t>(item.*id);
    if (own >= map.size() || !map[own]) continue;
    item.*id = *map[own];
    to.push_back(std::move(item));
  }
}

}  // namespace

OwnMeters::OwnMeters(std::vector<std::unique_ptr<Meter>> meters,
                     const std::vector<model::Domain>& domains,
                     const std::vector<model::Sensor>& sensors)
    : absent_(sensors) {
  for (auto& meter : meters) {
    Source source;
    for (const auto& own : meter->domains()) {
      const auto found = std::find_if(domains.begin(), domains.end(),
                                      [&own](const auto& d) { return is_same(d, own); });
      source.domains.push_back(found != domains.end() ? std::optional(found->id) : std::nullopt);
    }
    for (const auto& own : meter->sensors()) {
      const auto domain = source.domains.at(static_cast<std::size_t>(own.domain));
      const auto found = std::find_if(absent_.begin(), absent_.end(), [&](const auto& s) {
        return domain && s.domain == *domain && is_same(s, own);
      });
      source.sensors.emplace_back();
      if (found == absent_.end()) continue;
      source.sensors.back() = found->id;
      absent_.erase(found);
    }
    source.due.resize(meter->probes().size());
    source.meter = std::move(meter);
    sources_.push_back(std::move(source));
  }
}

HostTime OwnMeters::read(bool all, model::Readings& out) {
  HostTime next = HostTime::max();
  for (auto& source : sources_) {
    for (std::size_t probe = 0; probe < source.due.size(); ++probe) {
      if (all || source.due[probe] <= HostClock::now() + std::chrono::milliseconds{1}) {
        scratch_.clear();
        source.due[probe] = source.meter->read(probe, scratch_);
        take(source, out);
      }
      next = std::min(next, source.due[probe]);
    }
  }
  return next;
}

void OwnMeters::take(const Source& source, model::Readings& out) {
  move_renumbered(scratch_.counters, out.counters, &model::CounterReading::sensor, source.sensors);
  move_renumbered(scratch_.powers, out.powers, &model::PowerReading::sensor, source.sensors);
  move_renumbered(scratch_.gauges, out.gauges, &model::GaugeReading::sensor, source.sensors);
  move_renumbered(scratch_.failures, out.failures, &model::ReadFailure::sensor, source.sensors);
}

std::optional<Result<std::vector<model::GpuProcessUse>>> OwnMeters::read_processes(
    model::Readings& out) {
  std::optional<Result<std::vector<model::GpuProcessUse>>> all;
  for (auto& source : sources_) {
    scratch_.clear();
    auto uses = source.meter->read_processes(scratch_);
    take(source, out);
    if (!uses) continue;
    if (!*uses) return uses;
    if (!all) all.emplace();
    move_renumbered(**uses, **all, &model::GpuProcessUse::domain, source.domains);
  }
  return all;
}

}  // namespace jouleprof::meters::shared
