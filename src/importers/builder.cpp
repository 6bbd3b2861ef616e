#include "importers/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/median.h"
#include "importers/source_text.h"

namespace jouleprof::importers {

namespace {

constexpr Duration kShortestPause = std::chrono::seconds{5};
constexpr Duration kLongestStep = std::chrono::hours{24};
constexpr int kPauseFactor = 10;
// Far from the end of a count of nanoseconds, whatever the file says.
constexpr HostTime kLatest{std::chrono::hours{24 * 365 * 100}};

}  // namespace

Duration usual_distance(std::span<const Stamp> stamps) {
  std::vector<Duration> distances;
  for (std::size_t i = 1; i < stamps.size(); ++i) {
    const Duration distance = stamps[i].at - stamps[i - 1].at;
    if (!stamps[i].starts_segment && distance > Duration::zero()) distances.push_back(distance);
  }
  if (distances.empty()) return Duration::zero();
  return upper_median(std::move(distances));
}

Layout lay_out(std::span<const Stamp> stamps, Duration seam) {
  Layout layout;
  layout.times.reserve(stamps.size());
  const Duration usual = std::min(usual_distance(stamps), kLongestStep / kPauseFactor);
  const Duration pause = std::max(kShortestPause, kPauseFactor * usual);
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    const Duration at = stamps[i].at;
    if (i == 0) {
      layout.times.emplace_back();
      layout.segments.push_back({HostTime{}, HostTime{}, at, at});
      continue;
    }
    const Duration distance = at - stamps[i - 1].at;
    const HostTime before = layout.times.back();
    if (distance < Duration::zero()) ++layout.backward_steps;
    if (stamps[i].starts_segment || distance < Duration::zero() || distance > pause ||
        before + distance > kLatest) {
      layout.cut += std::clamp(distance, Duration::zero(), Duration::max() - layout.cut);
      const HostTime begin = before + seam;
      layout.times.push_back(begin);
      layout.segments.push_back({begin, begin, at, at});
    } else {
      layout.times.push_back(before + std::max(distance, Duration{1}));
      layout.segments.back().end = layout.times.back();
      layout.segments.back().stamp_end = at;
    }
  }
  return layout;
}

namespace {

constexpr double kImpossibleWatts = 1e5;

}  // namespace

RecordingBuilder::RecordingBuilder(const std::string& format) {
  recording_.run.source = "import:" + format;
  recording_.run.complete = true;
}

model::DomainId RecordingBuilder::add_domain(model::DomainKind kind, std::string device,
                                             std::string name) {
  model::Domain domain;
  domain.id = static_cast<model::DomainId>(recording_.domains.size());
  domain.kind = kind;
  domain.device = std::move(device);
  domain.name = std::move(name);
  recording_.domains.push_back(std::move(domain));
  return recording_.domains.back().id;
}

model::SensorId RecordingBuilder::add_sensor(model::DomainId domain, model::SensorKind kind,
                                             std::string name) {
  model::Sensor sensor;
  sensor.id = static_cast<model::SensorId>(recording_.sensors.size());
  sensor.domain = domain;
  sensor.kind = kind;
  sensor.name = std::move(name);
  recording_.sensors.push_back(std::move(sensor));
  return recording_.sensors.back().id;
}

model::Domain& RecordingBuilder::domain(model::DomainId id) {
  return recording_.domains[static_cast<std::size_t>(id)];
}

model::Process& RecordingBuilder::process(pid_t pid, HostTime at) {
  const auto [place, is_new] = processes_.try_emplace(pid, recording_.processes.size());
  if (is_new) {
    model::Process process;
    process.id = static_cast<model::ProcessId>(place->second);
    process.pid = pid;
    process.name = "(unknown)";
    process.start = at;
    recording_.processes.push_back(std::move(process));
  }
  return recording_.processes[place->second];
}

void RecordingBuilder::add_power(model::SensorId sensor, HostTime at, std::optional<double> watts) {
  const bool possible = watts && *watts >= 0 && *watts < kImpossibleWatts;
  if (possible) {
    recording_.readings.powers.push_back({sensor, at, Power::watts(*watts)});
    return;
  }
  if (watts) ++impossible_;
  recording_.readings.failures.push_back(
      {sensor,
       at,
       {Errc::kUnavailable, watts
                                ? fmt::format("the file holds an impossible power of {} W", *watts)
                                : std::string("the file has no value here")}});
}

void RecordingBuilder::add_gauge(model::SensorId sensor, HostTime at, double value) {
  recording_.readings.gauges.push_back({sensor, at, value});
}

void RecordingBuilder::warn(std::string text) {
  recording_.warnings.push_back({HostTime{}, std::move(text)});
}

void RecordingBuilder::set_clock(const Layout& layout, RealTime (*to_real)(Duration)) {
  if (to_real) {
    for (const Segment& segment : layout.segments) {
      recording_.clock_points.push_back({segment.begin, to_real(segment.stamp_begin), {}});
      if (segment.end != segment.begin) {
        recording_.clock_points.push_back({segment.end, to_real(segment.stamp_end), {}});
      }
    }
  }
  if (layout.segments.size() > 1) {
    warn(
        fmt::format("the recording was paused {}: {} not part of its time, and the energy "
                    "then is unknown",
                    counted(layout.segments.size() - 1, "time"),
                    layout.cut > Duration::zero()
                        ? fmt::format("{:.0f} s without data are", seconds(layout.cut))
                        : std::string("the pauses are")));
  }
  if (layout.backward_steps > 0) {
    warn(fmt::format("time stamps go back {}: the clock was set, or logs were joined",
                     counted(layout.backward_steps, "time")));
  }
}

Result<model::Recording> RecordingBuilder::finish(const std::string& path, HostTime begin,
                                                  HostTime end) && {
  std::vector<std::size_t> counts(recording_.sensors.size());
  for (const auto& power : recording_.readings.powers) {
    ++counts[static_cast<std::size_t>(power.sensor)];
  }
  for (const auto& counter : recording_.readings.counters) {
    ++counts[static_cast<std::size_t>(counter.sensor)];
  }
  if (std::none_of(counts.begin(), counts.end(), [](std::size_t n) { return n >= 2; })) {
    return fail(
        Errc::kUnavailable,
        fmt::format("{}: it holds fewer than two power readings, too few to compute an energy",
                    path));
  }
  if (impossible_ > 0) {
    warn(fmt::format("{} that no device can draw {} left out", counted(impossible_, "power value"),
                     impossible_ == 1 ? "was" : "were"));
  }
  if (!recording_.run.work_begin) {
    recording_.run.work_begin = begin;
    recording_.run.work_end = end;
  }
  return std::move(recording_);
}

}  // namespace jouleprof::importers
