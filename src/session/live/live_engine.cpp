#include "session/live/live_engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "model/device/sensor.h"

namespace jouleprof::session {
namespace {

constexpr Duration kStale = std::chrono::seconds{10};

// Absent where no time passed, or where a counter went back.
std::optional<double> busy_ratio(const model::MachineReading& from,
                                 const model::MachineReading& to) {
  const Duration busy = to.busy_cpu_time - from.busy_cpu_time;
  const Duration total = to.total_cpu_time - from.total_cpu_time;
  if (total <= Duration{} || busy < Duration{} || busy > total) return std::nullopt;
  return seconds(busy) / seconds(total);
}

bool is_package(const model::Domain& domain) {
  return domain.kind == model::DomainKind::kCpu && !domain.parent;
}

// A difference of two reads is wrong by up to a step of the counter: 5 % over 20 of them.
constexpr Duration kShortestDifference = std::chrono::milliseconds{500};
constexpr int kFewestSteps = 20;
constexpr Duration kCoarse = std::chrono::milliseconds{20};

int rank(const model::Sensor& sensor) {
  const bool coarse = sensor.traits.refresh.value_or(Duration{}) > kCoarse;
  switch (sensor.kind) {
    case model::SensorKind::kPowerRing:
      return 0;
    case model::SensorKind::kEnergyCounter:
      return coarse ? 4 : 1;
    case model::SensorKind::kPowerInstant:
      return 2;
    case model::SensorKind::kPowerAverage:
      return 3;
    case model::SensorKind::kGauge:
      break;
  }
  return 5;
}

}  // namespace

LiveEngine::LiveEngine(std::vector<model::Domain> domains, std::vector<model::Sensor> sensors,
                       Duration history)
    : sensors_(std::move(sensors)),
      ledger_(std::move(domains), sensors_, history),
      power_(sensors_),
      begins_(ledger_.domains().size()),
      shown_(ledger_.domains().size()) {
  packages_ = static_cast<std::size_t>(std::ranges::count_if(ledger_.domains(), is_package));
}

void LiveEngine::append(const model::Readings& readings) {
  ledger_.append(readings);
  power_.append(readings);
  for (const auto& reading : readings.gauges) {
    gauges_[reading.sensor] = {reading.value, reading.at};
  }
  for (const auto& failure : readings.failures) {
    const auto found = gauges_.find(failure.sensor);
    if (found != gauges_.end() && found->second.at < failure.at) gauges_.erase(found);
  }
}

void LiveEngine::append(const std::vector<model::MachineReading>& readings) {
  for (const auto& now : readings) {
    const auto ratio = machine_ ? busy_ratio(*machine_, now) : std::nullopt;
    if (ratio) busy_ = {*ratio, now.at};
    machine_ = now;
  }
}

model::Snapshot LiveEngine::snapshot(const ClockPoint& now, HostTime since) {
  if (since != since_) {
    std::ranges::fill(begins_, since);
    std::ranges::fill(shown_, Energy{});
  }
  since_ = since;
  model::Snapshot out{now.real, since, now.host - since, {}};
  for (std::size_t i = 0; i < begins_.size(); ++i) out.domains.push_back(snapshot_of(i, now.host));
  return out;
}

model::DomainSnapshot LiveEngine::snapshot_of(std::size_t domain, HostTime now) {
  model::DomainSnapshot out;
  out.domain = ledger_.domains()[domain];
  add_energy(domain, now, out);
  add_gauges(now, out);
  if (const auto power = power_.of(out.domain.id, now)) {
    out.power = power->power;
    out.provenance = model::combine(out.provenance, power->provenance);
  }
  if (out.provenance == model::Provenance::kUnavailable) {
    out.provenance = ledger_.provenance(domain);
  }
  return out;
}

void LiveEngine::add_energy(std::size_t domain, HostTime now, model::DomainSnapshot& out) {
  const auto newest = power_.newest(out.domain.id);
  if (newest) out.age = std::max(now - *newest, Duration{});
  auto found = ledger_.energy_since(begins_[domain], domain);
  if (!found) {
    out.reason = found.error().message;
    return;
  }
  begins_[domain] = found->begin;
  out.energy_begin = found->begin;
  out.energy_end = found->end;
  out.provenance = found->energy.provenance;
  out.energy = std::move(found->energy);
  shown_[domain] = out.energy->energy = std::max(out.energy->energy, shown_[domain]);
}

void LiveEngine::add_gauges(HostTime now, model::DomainSnapshot& out) const {
  for (const auto& sensor : sensors_) {
    if (sensor.domain != out.domain.id) continue;
    const auto gauge = gauges_.find(sensor.id);
    if (gauge == gauges_.end() || now - gauge->second.at >= kStale) continue;
    out.gauges[sensor.name] = gauge->second.value;
  }
  // The machine's CPU time is that of all packages: of one alone it is that package's.
  if (is_package(out.domain) && packages_ == 1 && busy_ && now - busy_->at < kStale) {
    out.gauges.try_emplace(std::string(model::gauge::kCpuUtilisation), busy_->value);
  }
}

LivePower::LivePower(const std::vector<model::Sensor>& sensors) {
  for (const auto& sensor : sensors) {
    if (sensor.kind == model::SensorKind::kGauge) continue;
    const Duration steps = kFewestSteps * sensor.traits.refresh.value_or(Duration{});
    Track& track = tracks_[sensor.id];
    track.domain = sensor.domain;
    track.provenance = sensor.provenance;
    track.rank = rank(sensor);
    track.shortest_difference = std::max(kShortestDifference, steps);
  }
}

void LivePower::append(const model::Readings& readings) {
  struct Mean {
    double sum = 0;
    int count = 0;
  };
  std::unordered_map<model::SensorId, Mean> means;
  for (const auto& reading : readings.powers) {
    const auto track = tracks_.find(reading.sensor);
    if (track == tracks_.end()) continue;
    auto& mean = means[reading.sensor];
    mean.sum += reading.power.watts();
    ++mean.count;
    track->second.power = Power::watts(mean.sum / mean.count);
    track->second.at = std::max(track->second.at, reading.at);
    track->second.newest = track->second.at;
  }
  for (const auto& reading : readings.counters) {
    const auto found = tracks_.find(reading.sensor);
    if (found == tracks_.end()) continue;
    auto& track = found->second;
    track.newest = reading.after;
    const bool is_first = !track.counter;
    const bool has_moved = is_first || reading.total != track.moved.total;
    const bool stood_still = track.unmoved - track.moved.after >= track.shortest_difference;
    track.unmoved = reading.after;
    // A counter that stands still says nothing of the power, nor does what it catches up with.
    if (!has_moved) continue;
    track.moved = reading;
    if (!is_first && !stood_still) {
      const Duration passed = reading.after - track.counter->after;
      if (passed < track.shortest_difference) continue;
      // A smaller total is a wrap or a reset: no difference to show.
      if (reading.total >= track.counter->total) {
        track.power = (reading.total - track.counter->total) / passed;
        track.at = reading.after;
      }
    }
    track.counter = reading;
  }
  for (const auto& failure : readings.failures) drop_failed(failure);
}

// Where a sensor fails after its readings, its domain has no power until a next one: that of a lost
// board is not the last one. Sensors with later readings still answer.
void LivePower::drop_failed(const model::ReadFailure& failure) {
  const auto failed = tracks_.find(failure.sensor);
  if (failed == tracks_.end()) return;
  const Track& its = failed->second;
  if (its.newest >= failure.at) return;
  for (auto& [id, track] : tracks_) {
    if (track.domain == its.domain && track.newest <= its.newest) track.power.reset();
  }
}

std::optional<LivePower::Value> LivePower::of(model::DomainId domain, HostTime now) const {
  const Track* best = nullptr;
  for (const auto& [id, track] : tracks_) {
    if (track.domain != domain || !track.power || now - track.at > kStale) continue;
    if (best == nullptr || track.rank < best->rank) best = &track;
  }
  if (best == nullptr) return std::nullopt;
  return Value{*best->power, best->provenance};
}

std::optional<HostTime> LivePower::newest(model::DomainId domain) const {
  std::optional<HostTime> latest;
  for (const auto& [id, track] : tracks_) {
    if (track.domain == domain) latest = std::max(latest, track.newest);
  }
  return latest;
}

}  // namespace jouleprof::session
