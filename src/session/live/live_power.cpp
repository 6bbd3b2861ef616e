#include "session/live/live_power.h"

#include <algorithm>

namespace jouleprof::session {
namespace {

constexpr Duration kStale = std::chrono::seconds{10};
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
    if (track.counter) {
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
