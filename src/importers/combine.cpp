#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "importers/builder.h"
#include "importers/import.h"

namespace jouleprof::importers {
namespace {

using model::Recording;

RealTime identity(Duration since_1970) { return RealTime{since_1970}; }

// Calls `visit` with each time of the recording that the combination has to place.
template <typename F>
void for_each_time(Recording& recording, F visit) {
  for (auto& r : recording.readings.powers) visit(r.at);
  for (auto& r : recording.readings.gauges) visit(r.at);
  for (auto& r : recording.readings.failures) visit(r.at);
  for (auto& r : recording.readings.counters) {
    visit(r.before);
    visit(r.after);
  }
  for (auto& r : recording.process_readings.processes) visit(r.at);
  for (auto& r : recording.process_readings.gpu_processes) visit(r.at);
  for (auto& r : recording.process_readings.machine) visit(r.at);
  for (auto& process : recording.processes) {
    visit(process.start);
    if (process.end) visit(*process.end);
  }
  for (auto& span : recording.idle_spans) {
    visit(span.begin);
    visit(span.end);
  }
  for (auto& window : recording.windows) {
    visit(window.begin);
    visit(window.end);
  }
  for (auto& window : recording.imported_windows) {
    if (window.begin) visit(*window.begin);
  }
  if (recording.run.work_begin) visit(*recording.run.work_begin);
  if (recording.run.work_end) visit(*recording.run.work_end);
}

Result<void> check_part(const ImportedPart& part) {
  const auto& points = part.recording.clock_points;
  if (points.empty()) {
    return fail(Errc::kUnavailable,
                fmt::format("{}: its rows have no date and time, so it cannot be placed among the "
                            "other logs; log with time stamps (dmon and pmon: -o DT), or import it "
                            "by itself",
                            part.path));
  }
  const auto goes_back = [](const auto& a, const auto& b) { return b.real < a.real; };
  if (std::ranges::adjacent_find(points, goes_back) != points.end()) {
    return fail(Errc::kCorrupt,
                fmt::format("{}: its time stamps go back, so it cannot be placed among the other "
                            "logs; import it by itself",
                            part.path));
  }
  return {};
}

class Combination {
 public:
  explicit Combination(std::vector<ImportedPart> parts) : parts_(std::move(parts)), builder_("") {}

  Result<Recording> run() {
    for (const ImportedPart& part : parts_) {
      if (auto good = check_part(part); !good) return forward_error(good);
    }
    place_times();
    for (ImportedPart& part : parts_) {
      if (auto added = add(part); !added) return forward_error(added);
    }
    sort_readings();
    trim_ends(out());
    builder_.set_parents();
    out().run.source = fmt::format("import:{}", fmt::join(formats_, "+"));
    builder_.set_clock(layout_, identity);
    return std::move(out());
  }

 private:
  Recording& out() { return builder_.recording(); }

  // From each part's host time to wall time, and from there to the common host time.
  void place_times() {
    std::vector<Duration> walls;
    for (ImportedPart& part : parts_) {
      const ClockMap map(part.recording.clock_points);
      for_each_time(part.recording, [&](HostTime& at) {
        at = HostTime{map.to_real(at).time_since_epoch()};
        walls.push_back(at.time_since_epoch());
      });
      for (const auto& sensor : part.recording.sensors) {
        if (sensor.kind == model::SensorKind::kPowerAverage) {
          seam_ = std::max(seam_, sensor.traits.window.value_or(seam_));
        }
      }
    }
    std::ranges::sort(walls);
    walls.erase(std::unique(walls.begin(), walls.end()), walls.end());
    std::vector<Stamp> stamps;
    for (const Duration wall : walls) stamps.push_back({wall, false});
    layout_ = lay_out(stamps, seam_);
    for (ImportedPart& part : parts_) {
      for_each_time(part.recording, [&](HostTime& at) {
        const auto place = std::ranges::lower_bound(walls, at.time_since_epoch());
        at = layout_.times[static_cast<std::size_t>(place - walls.begin())];
      });
    }
  }

  Result<void> add(ImportedPart& part) {
    Recording& in = part.recording;
    const std::string format = in.run.source.substr(in.run.source.find(':') + 1);
    if (std::ranges::find(formats_, format) == formats_.end()) {
      formats_.push_back(format);
    }
    std::vector<model::DomainId> domains;
    for (const auto& domain : in.domains) domains.push_back(domain_of(domain));
    for (std::size_t i = 0; i < in.domains.size(); ++i) {
      if (!in.domains[i].parent) continue;
      builder_.domain(domains[i]).parent = domains[static_cast<std::size_t>(*in.domains[i].parent)];
    }
    std::vector<model::SensorId> sensors;
    for (const auto& sensor : in.sensors) {
      sensors.push_back(sensor_of(sensor, domains[static_cast<std::size_t>(sensor.domain)]));
    }
    if (auto apart = check_apart(part, sensors); !apart) return apart;
    add_readings(in, sensors);
    add_processes(in, domains);
    add_imported_windows(part, domains);
    out().windows.insert(out().windows.end(), in.windows.begin(), in.windows.end());
    out().idle_spans.insert(out().idle_spans.end(), in.idle_spans.begin(), in.idle_spans.end());
    for (const auto& warning : in.warnings) {
      builder_.warn(warning.text.starts_with(part.path)
                        ? warning.text
                        : fmt::format("{}: {}", part.path, warning.text));
    }
    add_work(in.run);
    return {};
  }

  model::DomainId domain_of(const model::Domain& domain) {
    const auto [found, is_new] = domains_.try_emplace({domain.device, domain.kind});
    if (is_new) {
      found->second = builder_.add_domain(domain.kind, domain.device, domain.name);
      builder_.domain(found->second).uuid = domain.uuid;
      builder_.domain(found->second).unavailable_reason = domain.unavailable_reason;
    }
    model::Domain& common = builder_.domain(found->second);
    if (common.uuid.empty()) common.uuid = domain.uuid;
    if (domain.unavailable_reason.empty()) common.unavailable_reason.clear();
    return found->second;
  }

  model::SensorId sensor_of(const model::Sensor& sensor, model::DomainId domain) {
    const auto [found, is_new] = sensors_.try_emplace({domain, sensor.kind, sensor.name});
    if (is_new) {
      found->second = builder_.add_sensor(domain, sensor.kind, sensor.name);
      out().sensors.back().traits = sensor.traits;
      out().sensors.back().provenance = sensor.provenance;
    }
    return found->second;
  }

  struct Range {
    HostTime begin{};
    HostTime end{};
    std::string path;
  };

  // Two logs of one sensor may follow each other. At the same time they are of two devices, or one
  // log twice.
  Result<void> check_apart(const ImportedPart& part, const std::vector<model::SensorId>& sensors) {
    std::map<model::SensorId, Range> own;
    const auto note = [&](model::SensorId local, HostTime at) {
      const auto sensor = sensors[static_cast<std::size_t>(local)];
      Range& range = own.try_emplace(sensor, Range{at, at, part.path}).first->second;
      range.begin = std::min(range.begin, at);
      range.end = std::max(range.end, at);
    };
    for (const auto& r : part.recording.readings.powers) note(r.sensor, r.at);
    for (const auto& r : part.recording.readings.counters) note(r.sensor, r.before);
    for (const auto& [sensor, range] : own) {
      for (const Range& other : ranges_[sensor]) {
        if (range.begin > other.end || other.begin > range.end) continue;
        const auto domain = out().sensors[static_cast<std::size_t>(sensor)].domain;
        return fail(
            Errc::kCorrupt,
            fmt::format("{} and {} have the power of {} at the same time; if they are of two "
                        "GPUs, log with --query-gpu=timestamp,index,..., else leave one out",
                        other.path, range.path, builder_.domain(domain).device));
      }
      ranges_[sensor].push_back(range);
    }
    return {};
  }

  void add_readings(Recording& in, const std::vector<model::SensorId>& sensors) {
    const auto append = [&](auto& to, auto& from) {
      for (auto& reading : from) {
        reading.sensor = sensors[static_cast<std::size_t>(reading.sensor)];
        to.push_back(std::move(reading));
      }
    };
    append(out().readings.powers, in.readings.powers);
    append(out().readings.counters, in.readings.counters);
    append(out().readings.gauges, in.readings.gauges);
    append(out().readings.failures, in.readings.failures);
  }

  // A table that was copied, or that goes on in a later one, counts once.
  void add_imported_windows(ImportedPart& part, const std::vector<model::DomainId>& domains) {
    auto& all = out().imported_windows;
    std::multimap<HostTime, std::size_t> of_others;  // by begin
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].begin) of_others.emplace(*all[i].begin, i);
    }
    std::size_t repeated = 0;
    for (auto& window : part.recording.imported_windows) {
      for (auto& energy : window.energies) {
        energy.domain = domains[static_cast<std::size_t>(energy.domain)];
      }
      const auto [from, to] = of_others.equal_range(window.begin.value_or(HostTime::max()));
      if (std::any_of(from, to, [&](const auto& other) { return all[other.second] == window; })) {
        ++repeated;
      } else {
        all.push_back(std::move(window));
      }
    }
    if (repeated > 0) {
      builder_.warn(fmt::format("{}: {} left out that stand{} in another of these files, too",
                                part.path, counted(repeated, "window"), repeated == 1 ? "s" : ""));
    }
  }

  void add_processes(Recording& in, const std::vector<model::DomainId>& domains) {
    std::map<model::ProcessId, model::ProcessId> ids;
    for (auto& process : in.processes) {
      const auto [found, is_new] = processes_.try_emplace(process.pid, out().processes.size());
      const model::ProcessId local = process.id;
      if (is_new) {
        process.id = static_cast<model::ProcessId>(found->second);
        out().processes.push_back(std::move(process));
      } else {
        model::Process& common = out().processes[found->second];
        common.in_tree = common.in_tree || process.in_tree;
        common.start = std::min(common.start, process.start);
        if (common.name == "(unknown)") common.name = process.name;
      }
      ids[local] = out().processes[found->second].id;
    }
    for (auto& r : in.process_readings.processes) {
      r.process = ids.at(r.process);
      out().process_readings.processes.push_back(r);
    }
    for (auto& r : in.process_readings.gpu_processes) {
      r.process = ids.at(r.process);
      r.domain = domains[static_cast<std::size_t>(r.domain)];
      out().process_readings.gpu_processes.push_back(r);
    }
    auto& machine = out().process_readings.machine;
    machine.insert(machine.end(), in.process_readings.machine.begin(),
                   in.process_readings.machine.end());
  }

  void add_work(const model::RunInfo& run) {
    auto& work = out().run;
    if (run.work_begin) {
      work.work_begin = std::min(work.work_begin.value_or(*run.work_begin), *run.work_begin);
    }
    if (run.work_end)
      work.work_end = std::max(work.work_end.value_or(*run.work_end), *run.work_end);
  }

  void sort_readings() {
    const auto by_time = [](const auto& a, const auto& b) { return a.at < b.at; };
    auto& readings = out().readings;
    std::ranges::stable_sort(readings.powers, by_time);
    std::ranges::stable_sort(readings.gauges, by_time);
    std::ranges::stable_sort(readings.failures, by_time);
    std::ranges::stable_sort(readings.counters,
                             [](const auto& a, const auto& b) { return a.before < b.before; });
    auto& processes = out().process_readings;
    std::ranges::stable_sort(processes.processes, by_time);
    std::ranges::stable_sort(processes.gpu_processes, by_time);
    std::ranges::stable_sort(processes.machine, by_time);
  }

  std::vector<ImportedPart> parts_;
  RecordingBuilder builder_;
  Duration seam_{1};
  Layout layout_;
  std::vector<std::string> formats_;
  std::map<std::pair<std::string, model::DomainKind>, model::DomainId> domains_;  // by device
  std::map<std::tuple<model::DomainId, model::SensorKind, std::string>, model::SensorId> sensors_;
  std::map<model::SensorId, std::vector<Range>> ranges_;
  std::map<pid_t, std::size_t> processes_;  // places in the result
};

}  // namespace

Result<Recording> combine(std::vector<ImportedPart> parts) {
  return Combination(std::move(parts)).run();
}

}  // namespace jouleprof::importers
