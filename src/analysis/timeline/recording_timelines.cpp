#include "analysis/timeline/recording_timelines.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "analysis/timeline/sensors/observed_sensor.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

// The readings of each sensor, in order of time.
class Sorted {
 public:
  explicit Sorted(const model::Readings& readings) : failures_(readings.failures) {
    for (const auto& r : readings.counters) counters_[r.sensor].push_back(r);
    for (const auto& r : readings.powers) powers_[r.sensor].push_back(r);
    for (const auto& r : readings.gauges) gauges_[r.sensor].push_back(r);
    for (auto& [id, list] : counters_) {
      std::ranges::stable_sort(list,
                               [](const auto& a, const auto& b) { return a.before < b.before; });
    }
    const auto by_time = [](const auto& a, const auto& b) { return a.at < b.at; };
    for (auto& [id, list] : powers_) std::ranges::stable_sort(list, by_time);
    for (auto& [id, list] : gauges_) std::ranges::stable_sort(list, by_time);
  }

  bool has(model::SensorId id) const { return counters_.contains(id) || powers_.contains(id); }

  EnergyTimeline timeline(TimelineSensors sensors) const {
    if (sensors.power) {
      const auto list = powers_.find(sensors.power->id);
      if (list != powers_.end()) *sensors.power = as_observed(*sensors.power, list->second);
    }
    if (sensors.average && sensors.power && are_the_same(sensors.average->id, sensors.power->id)) {
      sensors.average.reset();
    }
    EnergyTimeline out(sensors);
    if (sensors.limit) append(gauges_, *sensors.limit, out);
    if (sensors.utilisation) append(gauges_, *sensors.utilisation, out);
    if (sensors.average) append(powers_, sensors.average->id, out);
    if (sensors.power) append(powers_, sensors.power->id, out);
    if (sensors.counter) append(counters_, sensors.counter->id, out);
    for (const auto& failure : failures_) out.append(failure);
    return out;
  }

 private:
  // A field that is named an average and shows the power's values is none: on an A100 power.draw is
  // power.draw.instant. An update between the reads of both makes single ones differ.
  bool are_the_same(model::SensorId average, model::SensorId power) const {
    constexpr double kEqual = 0.9;  // of the reads
    constexpr int kChanges = 20;    // of a value; equal ones of a steady load show nothing
    const auto a = powers_.find(average);
    const auto b = powers_.find(power);
    if (a == powers_.end() || b == powers_.end() || a->second.size() != b->second.size()) {
      return false;
    }
    int equal = 0;
    int changes = 0;
    for (std::size_t i = 0; i < b->second.size(); ++i) {
      equal += a->second[i].power == b->second[i].power ? 1 : 0;
      changes += i > 0 && b->second[i].power != b->second[i - 1].power ? 1 : 0;
    }
    return changes >= kChanges && equal >= kEqual * static_cast<double>(b->second.size());
  }

  template <class Readings>
  static void append(const Readings& readings, model::SensorId id, EnergyTimeline& out) {
    const auto list = readings.find(id);
    if (list == readings.end()) return;
    for (const auto& r : list->second) out.append(r);
  }

  std::map<model::SensorId, std::vector<model::CounterReading>> counters_;
  std::map<model::SensorId, std::vector<model::PowerReading>> powers_;
  std::map<model::SensorId, std::vector<model::GaugeReading>> gauges_;
  const std::vector<model::ReadFailure>& failures_;
};

// Sensors start and stop some seconds apart: sample buffers are read every 2 s, counters every 5 s.
constexpr Duration kApart = 10s;
constexpr double kMostForParts = 0.1;  // of the time

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
  std::vector<bool> has_readings;
  for (const auto& sensor : recording.sensors) has_readings.push_back(readings.has(sensor.id));
  Timelines out;
  for (const auto& domain : recording.domains) {
    const auto sensors = choose_sensors(recording.sensors, domain.id, has_readings);
    if (!sensors) {
      out.emplace_back();
      continue;
    }
    out.emplace_back(readings.timeline(*sensors));
    const auto& run = recording.run;
    if (run.work_begin) out.back()->mark(*run.work_begin);
    if (run.work_end) out.back()->mark(*run.work_end);
    if (run.work_begin && run.work_end) out.back()->set_work(*run.work_begin, *run.work_end);
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

HostTime common_end(const model::Recording& recording, Timelines& timelines,
                    const RecordedSpan& span) {
  HostTime end = span.end;
  HostTime of_parts = span.end;
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    const auto extent = timelines[i] ? timelines[i]->extent() : std::nullopt;
    if (!extent || extent->end < span.end - kApart) continue;
    HostTime& of_kind = recording.domains[i].parent ? of_parts : end;
    of_kind = std::min(of_kind, extent->end);
  }
  return end - of_parts > kMostForParts * (end - span.begin) ? end : std::min(end, of_parts);
}

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
