// Parts of a recording, as they come in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "model/recording.h"

namespace jouleprof::recording {

// What has come in since the last time. Its lists have the names of a model::Recording's: the
// functions below take either.
struct Batch {
  std::optional<model::RunInfo> run;  // as it is now
  std::vector<ClockPoint> clock_points;
  std::vector<model::Domain> domains;
  std::vector<model::Sensor> sensors;
  std::vector<model::Process> processes;
  std::vector<model::IdleSpan> idle_spans;
  std::vector<model::Warning> warnings;
  std::optional<model::Overhead> overhead;
  model::Readings readings;
  model::ProcessReadings process_readings;
  std::vector<model::Window> windows;
  struct TracePart {
    std::uint32_t trace = 0;
    model::Trace more;
  };
  std::vector<TracePart> traces;

  bool empty() const {
    return !run && clock_points.empty() && domains.empty() && sensors.empty() &&
           processes.empty() && idle_spans.empty() && warnings.empty() && !overhead &&
           readings.empty() && process_readings.empty() && windows.empty() && traces.empty();
  }
  void append(Batch later);
  void drop_series() {
    readings.clear();
    process_readings.clear();
    windows.clear();
  }
};

// Readings, readings of processes, and windows: what grows with time.
template <class Parts>
std::size_t series_bytes(const Parts& parts) {
  const auto bytes = [](const auto&... lists) { return ((lists.size() * sizeof(lists[0])) + ...); };
  const model::Readings& readings = parts.readings;
  const model::ProcessReadings& processes = parts.process_readings;
  return bytes(readings.counters, readings.powers, readings.gauges, readings.failures,
               processes.processes, processes.gpu_processes, processes.machine, parts.windows);
}

template <class T>
void append_list(std::vector<T>& all, std::vector<T>& later) {
  std::ranges::move(later, std::back_inserter(all));
}

// All of `later` but its run and traces. A domain, sensor or process that was described before is
// replaced.
template <class Parts, class Later>
void append_parts(Parts& parts, Later later) {
  const auto describe = [](auto& all, auto& more) {
    for (auto& item : more) {
      const auto same = std::ranges::find_if(all, [&](const auto& a) { return a.id == item.id; });
      if (same == all.end()) {
        all.push_back(std::move(item));
      } else {
        *same = std::move(item);
      }
    }
  };
  describe(parts.domains, later.domains);
  describe(parts.sensors, later.sensors);
  describe(parts.processes, later.processes);
  append_list(parts.clock_points, later.clock_points);
  append_list(parts.idle_spans, later.idle_spans);
  append_list(parts.warnings, later.warnings);
  if (later.overhead) parts.overhead = later.overhead;
  append_list(parts.readings.counters, later.readings.counters);
  append_list(parts.readings.powers, later.readings.powers);
  append_list(parts.readings.gauges, later.readings.gauges);
  append_list(parts.readings.failures, later.readings.failures);
  append_list(parts.process_readings.processes, later.process_readings.processes);
  append_list(parts.process_readings.gpu_processes, later.process_readings.gpu_processes);
  append_list(parts.process_readings.machine, later.process_readings.machine);
  append_list(parts.windows, later.windows);
}

inline void Batch::append(Batch later) {
  if (later.run) run = std::move(later.run);
  append_list(traces, later.traces);
  append_parts(*this, std::move(later));
}

// More of the same process: what is in lists is added, the rest replaces what is there.
inline void append_trace(model::Trace& trace, model::Trace more) {
  static_cast<model::TracedProcess&>(trace) = more;
  append_list(trace.devices, more.devices);
  append_list(trace.classes, more.classes);
  append_list(trace.layers, more.layers);
  append_list(trace.ranges, more.ranges);
  append_list(trace.scopes, more.scopes);
  append_list(trace.chunks, more.chunks);
  trace.status = std::move(more.status);
  trace.position = more.position;
}

}  // namespace jouleprof::recording
