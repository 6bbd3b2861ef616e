#include "model/recording.h"

#include <fmt/format.h>

#include <map>

namespace jouleprof::model {

std::vector<std::string> texts_of(const std::vector<OpenWindow>& windows, HostTime at,
                                  std::string_view when) {
  constexpr std::size_t kMostNames = 20;
  struct Group {
    std::size_t count = 0;
    Duration longest{};
  };
  using Key = std::pair<pid_t, std::string>;
  std::map<Key, Group> groups;
  for (const auto& window : windows) {
    Group& group = groups[{window.process, window.name}];
    ++group.count;
    group.longest = std::max(group.longest, at - window.begin);
  }
  std::vector<std::pair<Key, Group>> oldest_first(groups.begin(), groups.end());
  std::ranges::stable_sort(oldest_first, [](const auto& a, const auto& b) {
    return a.second.longest > b.second.longest;
  });
  std::vector<std::string> texts;
  for (const auto& [key, group] : oldest_first) {
    const auto& [process, name] = key;
    if (texts.size() == kMostNames) {
      texts.push_back(fmt::format("windows of {} other names were open when {}",
                                  groups.size() - kMostNames, when));
      break;
    }
    const double age = seconds(group.longest);
    texts.push_back(
        group.count == 1
            ? fmt::format("window '{}' of process {} was open when {}, {:.2f} s after its begin; "
                          "it has no energy",
                          name, process, when, age)
            : fmt::format("{} windows '{}' of process {} were open when {}, the oldest {:.2f} s "
                          "after its begin; they have no energy",
                          group.count, name, process, when, age));
  }
  return texts;
}

bool is_at_rest_around_traces(const RunInfo& run) {
  return run.source == "attach" || run.source.starts_with("import:");
}

bool is_simulated(const Recording& recording) {
  return std::ranges::any_of(recording.sensors, [](const Sensor& sensor) {
    return sensor.provenance == Provenance::kSimulated;
  });
}

std::vector<GaugeReading> gauge_of(const Recording& recording, const Domain& domain,
                                   std::string_view name) {
  return gauge_of(recording, domain, name, HostTime::min(), HostTime::max());
}

std::vector<GaugeReading> gauge_of(const Recording& recording, const Domain& domain,
                                   std::string_view name, HostTime begin, HostTime end) {
  std::vector<GaugeReading> out;
  for (const auto& sensor : recording.sensors) {
    if (sensor.kind != SensorKind::kGauge || sensor.name != name) continue;
    if (sensor.domain != domain.id && sensor.domain != domain.parent) continue;
    for (const auto& r : recording.readings.gauges) {
      if (r.sensor == sensor.id && r.at >= begin && r.at <= end) out.push_back(r);
    }
  }
  std::ranges::stable_sort(out, [](const auto& a, const auto& b) { return a.at < b.at; });
  return out;
}

}  // namespace jouleprof::model
