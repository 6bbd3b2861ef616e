#include "meters/replay/replay_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace jouleprof::meters {
namespace {

constexpr Duration kPeriod = std::chrono::milliseconds{50};

// When a reading could first have been handed out.
HostTime stamp(const model::CounterReading& r) { return r.after; }
template <typename T>
HostTime stamp(const T& r) {
  return r.at;
}

// Calls `f` with each kind of readings.
template <typename F>
void for_each_kind(model::Readings& readings, F&& f) {
  f(readings.counters);
  f(readings.powers);
  f(readings.gauges);
  f(readings.failures);
}

HostTime earliest(const model::Readings& readings) {
  HostTime first = HostTime::max();
  for (const auto& r : readings.counters) first = std::min({first, r.before, r.after});
  for (const auto& r : readings.powers) first = std::min(first, r.at);
  for (const auto& r : readings.gauges) first = std::min(first, r.at);
  for (const auto& r : readings.failures) first = std::min(first, r.at);
  return first;
}

// At the speed of life, nothing is rounded.
Duration scale(Duration d, double speed) {
  return speed == 1 ? d : Duration{std::llround(static_cast<double>(d.count()) / speed)};
}
Energy scale(Energy e, double speed) {
  if (speed == 1) return e;
  return Energy::microjoules(std::llround(static_cast<double>(e.microjoules()) / speed));
}
template <typename T>
std::optional<T> scale(std::optional<T> value, double speed) {
  return value ? std::optional(scale(*value, speed)) : std::nullopt;
}

template <typename T>
void hand_out(const std::vector<T>& from, std::size_t& next, HostTime now, std::vector<T>& to) {
  for (; next < from.size() && stamp(from[next]) <= now; ++next) to.push_back(from[next]);
}

}  // namespace

Result<std::unique_ptr<ReplayMeter>> ReplayMeter::open(model::Recording recording,
                                                       const ReplayOptions& options) {
  if (!std::isfinite(options.speed) || options.speed <= 0) {
    return fail(Errc::kInvalidArgument,
                fmt::format("a replay's speed must be above 0, not {}", options.speed));
  }
  if (recording.readings.empty()) {
    return fail(Errc::kUnavailable, "the recording holds no reading to replay");
  }
  std::unique_ptr<ReplayMeter> meter(new ReplayMeter);
  if (auto ok = meter->renumber(recording); !ok) return forward_error(ok);
  if (!options.keep_provenance) {
    for (model::Sensor& s : meter->sensors_) s.provenance = model::Provenance::kSimulated;
  }
  meter->clock_ = options.clock;
  meter->shift(options.clock(), options.speed);
  meter->probes_.push_back({"replay", kPeriod});
  return meter;
}

Result<void> ReplayMeter::renumber(model::Recording& recording) {
  std::map<model::DomainId, model::DomainId> domain_ids;
  for (const model::Domain& d : recording.domains) {
    domain_ids.emplace(d.id, model::DomainId{static_cast<std::uint32_t>(domain_ids.size())});
  }
  std::map<model::SensorId, model::SensorId> sensor_ids;
  for (const model::Sensor& s : recording.sensors) {
    sensor_ids.emplace(s.id, model::SensorId{static_cast<std::uint32_t>(sensor_ids.size())});
  }
  if (domain_ids.size() != recording.domains.size() ||
      sensor_ids.size() != recording.sensors.size()) {
    return fail(Errc::kCorrupt, "two domains or sensors of the recording have one id");
  }

  bool known = true;
  const auto map = [&known](const auto& ids, auto& id) {
    const auto found = ids.find(id);
    if (found == ids.end()) {
      known = false;
    } else {
      id = found->second;
    }
  };
  for (model::Domain& d : recording.domains) {
    map(domain_ids, d.id);
    if (d.parent) map(domain_ids, *d.parent);
  }
  for (model::Sensor& s : recording.sensors) {
    map(sensor_ids, s.id);
    map(domain_ids, s.domain);
  }
  for_each_kind(recording.readings, [&](auto& kind) {
    for (auto& reading : kind) map(sensor_ids, reading.sensor);
  });
  if (!known) {
    return fail(Errc::kCorrupt,
                "the recording names a domain or a sensor that it does not describe");
  }
  domains_ = std::move(recording.domains);
  sensors_ = std::move(recording.sensors);
  readings_ = std::move(recording.readings);
  return {};
}

void ReplayMeter::shift(HostTime start, double speed) {
  const HostTime first = earliest(readings_);
  const auto move = [&](HostTime& t) { t = start + scale(t - first, speed); };
  for (auto& r : readings_.counters) {
    move(r.before);
    move(r.after);
    r.total = scale(r.total, speed);
  }
  for (auto& r : readings_.powers) move(r.at);
  for (auto& r : readings_.gauges) move(r.at);
  for (auto& r : readings_.failures) move(r.at);
  for_each_kind(readings_, [](auto& kind) {
    std::stable_sort(kind.begin(), kind.end(),
                     [](const auto& a, const auto& b) { return stamp(a) < stamp(b); });
  });
  for (model::Sensor& s : sensors_) {
    s.traits.refresh = scale(s.traits.refresh, speed);
    s.traits.window = scale(s.traits.window, speed);
    s.traits.lag = scale(s.traits.lag, speed);
    s.traits.rise = scale(s.traits.rise, speed);
    s.traits.wrap = scale(s.traits.wrap, speed);
    s.traits.quantum = scale(s.traits.quantum, speed);
  }
}

HostTime ReplayMeter::read(std::size_t index, model::Readings& out) {
  const HostTime now = clock_();
  hand_out(readings_.counters, next_.counters, now, out.counters);
  hand_out(readings_.powers, next_.powers, now, out.powers);
  hand_out(readings_.gauges, next_.gauges, now, out.gauges);
  hand_out(readings_.failures, next_.failures, now, out.failures);
  return now + probes_.at(index).period;
}

bool ReplayMeter::finished() const {
  return next_.counters == readings_.counters.size() && next_.powers == readings_.powers.size() &&
         next_.gauges == readings_.gauges.size() && next_.failures == readings_.failures.size();
}

}  // namespace jouleprof::meters
