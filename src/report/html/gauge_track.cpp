#include "report/html/gauge_track.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/device/clock_reasons.h"
#include "model/device/gauge_names.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

using model::GaugeReading;

// A reading holds until the next one, but not for longer than this.
constexpr Duration kLongestHold = std::chrono::seconds{15};
constexpr std::size_t kMostIntervals = 5000;

std::vector<GaugeReading> readings_of(const analysis::Run& run, model::SensorId sensor,
                                      const analysis::PartSpan& span) {
  std::vector<GaugeReading> own;
  for (const auto& r : run.recording().readings.gauges) {
    if (r.sensor == sensor && span.contains(r.at) && std::isfinite(r.value)) own.push_back(r);
  }
  std::stable_sort(own.begin(), own.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  return own;
}

// The least and the greatest of each of `count` equal parts, in order of time.
std::vector<GaugeReading> extremes(const std::vector<GaugeReading>& all, std::size_t count) {
  if (all.size() <= 2 * count) return all;
  std::vector<GaugeReading> kept;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(all.size() * i / count);
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(all.size() * (i + 1) / count);
    auto [low, high] = std::minmax_element(
        begin, end, [](const auto& a, const auto& b) { return a.value < b.value; });
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (high != low) kept.push_back(*high);
  }
  return kept;
}

Json time_json(HostTime t, HostTime origin) {
  return decimal(fixed_decimal(seconds(t - origin), 3));
}

}  // namespace

Json gauge_tracks(const analysis::Run& run, const analysis::PartSpan& span, HostTime origin,
                  std::size_t points) {
  Json tracks = Json::array();
  for (const auto& sensor : run.recording().sensors) {
    if (sensor.kind != model::SensorKind::kGauge) continue;
    if (sensor.name == model::gauge::kClockEventReasons) continue;
    const auto readings = extremes(readings_of(run, sensor.id, span), points / 2);
    if (readings.empty()) continue;
    Json track = Json::object();
    track["id"] = static_cast<std::uint32_t>(sensor.domain);
    track["quantity"] = sensor.name;
    track["times"] = Json::array();
    track["values"] = Json::array();
    for (const auto& r : readings) {
      track["times"].push_back(time_json(r.at, origin));
      track["values"].push_back(decimal(fixed_decimal(r.value, std::abs(r.value) < 1000 ? 3 : 0)));
    }
    tracks.push_back(std::move(track));
  }
  return tracks;
}

Json clock_limit_tracks(const analysis::Run& run, const analysis::PartSpan& span, HostTime origin) {
  Json tracks = Json::array();
  const auto put = [&](model::DomainId id, HostTime begin, HostTime end,
                       model::ClockReasons reasons) {
    Json names = Json::array();
    for (const auto name : reasons.names()) {
      if (name != "idle") names.push_back(name);
    }
    if (names.empty() || end <= begin || tracks.size() >= kMostIntervals) return;
    Json track = Json::object();
    track["id"] = static_cast<std::uint32_t>(id);
    track["begin_seconds"] = time_json(begin, origin);
    track["end_seconds"] = time_json(end, origin);
    track["reasons"] = std::move(names);
    tracks.push_back(std::move(track));
  };
  for (const auto& sensor : run.recording().sensors) {
    if (sensor.name != model::gauge::kClockEventReasons) continue;
    const auto readings = readings_of(run, sensor.id, span);
    for (std::size_t i = 0; i < readings.size();) {
      std::size_t next = i + 1;
      while (next < readings.size() && readings[next].value == readings[i].value &&
             readings[next].at - readings[next - 1].at <= kLongestHold) {
        ++next;
      }
      const HostTime hold = std::min(readings[next - 1].at + kLongestHold, span.end);
      const HostTime end =
          next < readings.size() ? std::min(readings[next].at, hold) : readings[next - 1].at;
      put(sensor.domain, readings[i].at, end, model::ClockReasons::of_gauge(readings[i].value));
      i = next;
    }
  }
  return tracks;
}

}  // namespace jouleprof::report
