#include "analysis/recording_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "analysis/activity/replay_time.h"
#include "analysis/levels/domains.h"
#include "model/device/gauge_names.h"
#include "model/recording.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

void check_clocks(const model::Recording& recording, HostTime begin, HostTime end,
                  std::vector<std::string>& out) {
  // Clock points of an import lie around the pauses of the other tool, which it names itself.
  if (recording.run.source.starts_with("import:")) return;
  auto points = recording.clock_points;
  std::sort(points.begin(), points.end(),
            [](const auto& a, const auto& b) { return a.host < b.host; });
  Duration slept{};
  Duration stepped{};
  for (std::size_t i = 1; i < points.size(); ++i) {
    const auto& a = points[i - 1];
    const auto& b = points[i];
    if (b.host < begin || a.host > end) continue;
    const Duration sleep = b.suspended - a.suspended;
    const Duration step = (b.real - a.real) - (b.host - a.host) - sleep;
    if (sleep > 100ms) slept += sleep;
    // Slewing by a time daemon is far below this.
    if (std::chrono::abs(step) > 100ms + (b.host - a.host) / 1000) stepped += step;
  }
  if (slept > Duration{}) {
    out.push_back(fmt::format(
        "the machine was suspended for {:.1f} s; that time is not in any figure", seconds(slept)));
  }
  if (stepped != Duration{}) {
    out.push_back(fmt::format(
        "the wall clock was set by {:+.1f} s; energies are not affected, but times of day "
        "before and after differ by it",
        seconds(stepped)));
  }
}

void check_limits(const model::Recording& recording, HostTime begin, HostTime end,
                  std::vector<std::string>& out) {
  for (const auto& domain : recording.domains) {
    if (domain.kind != model::DomainKind::kGpu || domain.parent) continue;
    int all = 0;
    int power = 0;
    int thermal = 0;
    for (const auto& r :
         gauge_of(recording, domain, model::gauge::kClockEventReasons, begin, end)) {
      if (!(r.value >= 0)) continue;
      const auto reasons = model::ClockReasons::of_gauge(r.value);
      ++all;
      power += reasons.limited_by_power();
      thermal += reasons.limited_by_heat();
    }
    const auto report = [&](int n, const char* what) {
      if (n > 0) {
        out.push_back(
            fmt::format("{}: held back by its {} limit in {:.0f} % of the readings; clocks "
                        "were lower than the work asked for",
                        domain.device, what, 100.0 * n / all));
      }
    };
    report(power, "power");
    report(thermal, "thermal or slowdown");
  }
}

// Of a recorder that was killed.
void check_open_windows(const model::Recording& recording, std::vector<std::string>& out) {
  const auto& open = recording.run.open_windows;
  if (recording.run.complete || open.empty() || recording.run.being_written) return;
  HostTime end = open.front().begin;
  for (const auto& window : open) end = std::max(end, window.begin);
  for (const auto& r : recording.readings.counters) end = std::max(end, r.after);
  for (const auto& r : recording.readings.powers) end = std::max(end, r.at);
  for (auto& text : model::texts_of(open, end, "the recording was cut off")) {
    out.push_back(std::move(text));
  }
}

std::string how_divided(const model::Recording& recording, const model::Domain& board) {
  bool by_activity = false, by_slices = true;
  for (const auto* instance : instances_of(recording.domains, board.id)) {
    by_activity |= !gauge_of(recording, *instance, model::gauge::kSmActivity).empty();
    by_slices &= slices_of(*instance) > 0;
  }
  if (!by_slices) {
    return "only where one instance worked, because the driver does not say how large each is";
  }
  return by_activity
             ? "by the activity and the slices of its instances"
             : "by the slices of the instances that have processes (ESTIMATED; the driver does not "
               "report their activity, so that whether each worked is not known)";
}

void check_divided(const model::Recording& recording, std::vector<std::string>& out) {
  for (const auto& domain : recording.domains) {
    if (domain.kind != model::DomainKind::kGpu || !is_divided(recording, domain)) continue;
    out.push_back(fmt::format(
        "{}: MIG divides this GPU, and its sensors see all instances together: held energy is "
        "unattributed, active energy is divided {}, and kernels have no energy; disable MIG mode "
        "to "
        "measure one program",
        domain.device, how_divided(recording, domain)));
  }
}

}  // namespace

std::vector<std::string> recording_warnings(const model::Recording& recording, HostTime begin,
                                            HostTime end) {
  std::vector<std::string> out;
  if (recording.run.being_written) {
    out.push_back("the recording is still being written; figures end with what it has so far");
  } else if (!recording.run.complete) {
    out.push_back("the recording was cut off; figures end there");
  }
  for (const auto& w : recording.warnings) out.push_back(w.text);
  check_clocks(recording, begin, end, out);
  check_limits(recording, begin, end, out);
  check_divided(recording, out);
  check_open_windows(recording, out);
  return out;
}

std::vector<std::string> replay_warnings(const model::Recording& recording, Timelines& timelines,
                                         HostTime begin, HostTime end, HostTime work_end) {
  const ReplayTime replay = replay_time(recording);
  const auto took = [&](HostTime from, HostTime to) {
    std::string all;
    for (std::size_t i = 0; i < recording.domains.size(); ++i) {
      const auto& domain = recording.domains[i];
      if (!timelines[i] || domain.parent || !domain.visible) continue;
      const auto energy = replay.energy_within(*timelines[i], from, to);
      if (!energy) continue;
      all += fmt::format("{}{:.1f} J of {}", all.empty() ? "" : ", ", energy->energy.joules(),
                         domain.device);
    }
    return all;
  };
  std::vector<std::string> out;
  if (const auto all = took(end, work_end); !all.empty()) {
    out.push_back(
        fmt::format("isolated re-runs of layers and kernels (--replay) ran for {:.1f} s after the "
                    "program; their "
                    "{} are in no figure",
                    seconds(replay.within(end, work_end)), all));
  }
  if (const auto all = took(begin, end); !all.empty()) {
    out.push_back(fmt::format(
        "isolated re-runs of layers and kernels (--replay) ran for {:.1f} s of this time; "
        "the figures include their {}",
        seconds(replay.within(begin, end)), all));
  }
  return out;
}

namespace {

// The times between two values of a sensor, or after its last one, in which a read of it failed.
struct FailedTime {
  HostTime begin{};
  std::optional<HostTime> end;  // absent: no value came after
  std::string why;              // of the first failure
};

std::vector<FailedTime> failed_times(const model::Recording& recording, model::SensorId sensor) {
  std::vector<HostTime> values;
  for (const auto& r : recording.readings.counters) {
    if (r.sensor == sensor) values.push_back(r.after);
  }
  for (const auto& r : recording.readings.powers) {
    if (r.sensor == sensor) values.push_back(r.at);
  }
  std::vector<FailedTime> out;
  for (const auto& f : recording.readings.failures) {
    if (f.sensor != sensor) continue;
    const auto after = std::upper_bound(values.begin(), values.end(), f.at);
    if (after == values.begin()) continue;
    const HostTime begin = *std::prev(after);
    if (!out.empty() && out.back().begin == begin) continue;
    const auto end = after == values.end() ? std::optional<HostTime>{} : *after;
    out.push_back({begin, end, f.error.message});
  }
  return out;
}

}  // namespace

std::vector<std::string> failed_read_warnings(const model::Recording& recording,
                                              const std::string& device,
                                              const TimelineSensors& sensors, RecordedSpan span,
                                              HostTime work_begin) {
  std::vector<std::string> out;
  const auto look = [&](const model::Sensor& sensor, const char* instead) {
    auto times = failed_times(recording, sensor.id);
    std::erase_if(times, [&](const FailedTime& t) {
      return std::min(t.end.value_or(span.end), span.end) - std::max(t.begin, span.begin) < 1s;
    });
    if (times.empty()) return;
    const FailedTime& first = times.front();
    out.push_back(
        fmt::format("{}: {} could not be read from {:.1f} s {}{}: {}; {}", device, sensor.name,
                    seconds(first.begin - work_begin),
                    first.end ? fmt::format("to {:.1f} s", seconds(*first.end - work_begin)) : "on",
                    times.size() > 1 ? fmt::format(", the first of {} times", times.size()) : "",
                    first.why, instead));
  };
  if (sensors.counter) {
    look(*sensors.counter, sensors.power ? "the integral of power is used there"
                                         : "nothing else shows the energy there");
  }
  if (sensors.power) {
    look(*sensors.power, sensors.counter ? "the energy there is the counter's alone"
                                         : "nothing else shows the energy there");
  }
  return out;
}

}  // namespace jouleprof::analysis
