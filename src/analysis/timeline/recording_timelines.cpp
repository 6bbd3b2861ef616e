#include "analysis/timeline/recording_timelines.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

std::vector<bool> who_spoke(const model::Recording& r) {
  std::unordered_map<std::uint32_t, std::size_t> index;
  for (std::size_t i = 0; i < r.sensors.size(); ++i) {
    index[static_cast<std::uint32_t>(r.sensors[i].id)] = i;
  }
  std::vector<bool> spoke(r.sensors.size(), false);
  const auto see = [&](model::SensorId id) {
    const auto found = index.find(static_cast<std::uint32_t>(id));
    if (found != index.end()) spoke[found->second] = true;
  };
  for (const auto& x : r.readings.counters) see(x.sensor);
  for (const auto& x : r.readings.powers) see(x.sensor);
  return spoke;
}

// The readings of every sensor, in order of time, so that each timeline reads only its own.
struct Sorted {
  std::unordered_map<std::uint32_t, std::vector<model::CounterReading>> counters;
  std::unordered_map<std::uint32_t, std::vector<model::PowerReading>> powers;

  explicit Sorted(const model::Readings& readings) {
    for (const auto& r : readings.counters) {
      counters[static_cast<std::uint32_t>(r.sensor)].push_back(r);
    }
    for (const auto& r : readings.powers) powers[static_cast<std::uint32_t>(r.sensor)].push_back(r);
    for (auto& [id, list] : counters) {
      std::stable_sort(list.begin(), list.end(),
                       [](const auto& a, const auto& b) { return a.before < b.before; });
    }
    for (auto& [id, list] : powers) {
      std::stable_sort(list.begin(), list.end(),
                       [](const auto& a, const auto& b) { return a.at < b.at; });
    }
  }
};

EnergyTimeline build(const TimelineSensors& sensors, const Sorted& readings) {
  EnergyTimeline timeline(sensors);
  if (sensors.power) {
    const auto list = readings.powers.find(static_cast<std::uint32_t>(sensors.power->id));
    if (list != readings.powers.end()) {
      for (const auto& r : list->second) timeline.append(r);
    }
  }
  if (sensors.counter) {
    const auto list = readings.counters.find(static_cast<std::uint32_t>(sensors.counter->id));
    if (list != readings.counters.end()) {
      for (const auto& r : list->second) timeline.append(r);
    }
  }
  return timeline;
}

// Sources start and stop some seconds apart: a ring is read every two, a counter every five.
constexpr Duration kApart = 10s;

}  // namespace

std::optional<RecordedSpan> recorded_span(const model::Recording& r) {
  HostTime first = HostTime::max();
  HostTime last = HostTime::min();
  const auto see = [&](HostTime t) {
    first = std::min(first, t);
    last = std::max(last, t);
  };
  for (const auto& x : r.readings.counters) see(x.before), see(x.after);
  for (const auto& x : r.readings.powers) see(x.at);
  for (const auto& x : r.readings.gauges) see(x.at);
  for (const auto& x : r.readings.failures) see(x.at);
  for (const auto& x : r.process_readings.processes) see(x.at);
  for (const auto& x : r.process_readings.machine) see(x.at);
  if (r.run.work_begin) see(*r.run.work_begin);
  if (r.run.work_end) see(*r.run.work_end);
  if (first > last) return std::nullopt;
  return RecordedSpan{first, last};
}

Timelines timelines_of(const model::Recording& recording) {
  const Sorted readings(recording.readings);
  const std::vector<bool> spoke = who_spoke(recording);
  Timelines out;
  for (const auto& domain : recording.domains) {
    const auto sensors = choose_sensors(recording.sensors, domain.id, spoke);
    if (!sensors) {
      out.emplace_back();
      continue;
    }
    out.emplace_back(build(*sensors, readings));
    if (recording.run.work_begin) out.back()->mark(*recording.run.work_begin);
    if (recording.run.work_end) out.back()->mark(*recording.run.work_end);
  }
  return out;
}

HostTime common_begin(Timelines& timelines, HostTime first) {
  HostTime begin = first;
  for (auto& t : timelines) {
    const auto extent = t ? t->extent() : std::nullopt;
    if (extent && extent->begin <= first + kApart) begin = std::max(begin, extent->begin);
  }
  return begin;
}

HostTime common_end(Timelines& timelines, HostTime last) {
  HostTime end = last;
  for (auto& t : timelines) {
    const auto extent = t ? t->extent() : std::nullopt;
    if (extent && extent->end >= last - kApart) end = std::min(end, extent->end);
  }
  return end;
}

}  // namespace jouleprof::analysis
