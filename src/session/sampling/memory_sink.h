// A sink that keeps the recording in memory.
#pragma once

#include <algorithm>
#include <utility>

#include "session/sampling/sink.h"

namespace jouleprof::session {

class MemorySink : public Sink {
 public:
  // To be read once the session has ended.
  model::Recording recording;

  Result<void> set_run(const model::RunInfo& run) override { return recording.run = run, ok(); }
  Result<void> add(const ClockPoint& p) override {
    return recording.clock_points.push_back(p), ok();
  }
  Result<void> add(const model::Domain& d) override { return put(recording.domains, d); }
  Result<void> add(const model::Sensor& s) override { return put(recording.sensors, s); }
  Result<void> add(const model::Process& p) override { return put(recording.processes, p); }
  Result<void> add(const model::IdleSpan& s) override {
    return recording.idle_spans.push_back(s), ok();
  }
  Result<void> add(const model::Warning& w) override {
    return recording.warnings.push_back(w), ok();
  }
  Result<void> set_overhead(const model::Overhead& o) override {
    return recording.overhead = o, ok();
  }
  Result<void> append(const model::Readings& r) override {
    auto& all = recording.readings;
    all.counters.insert(all.counters.end(), r.counters.begin(), r.counters.end());
    all.powers.insert(all.powers.end(), r.powers.begin(), r.powers.end());
    all.gauges.insert(all.gauges.end(), r.gauges.begin(), r.gauges.end());
    all.failures.insert(all.failures.end(), r.failures.begin(), r.failures.end());
    return {};
  }
  Result<void> append(const model::ProcessReadings& r) override {
    auto& all = recording.process_readings;
    all.processes.insert(all.processes.end(), r.processes.begin(), r.processes.end());
    all.gpu_processes.insert(all.gpu_processes.end(), r.gpu_processes.begin(),
                             r.gpu_processes.end());
    all.machine.insert(all.machine.end(), r.machine.begin(), r.machine.end());
    return {};
  }
  Result<void> append(const std::vector<model::Window>& w) override {
    recording.windows.insert(recording.windows.end(), w.begin(), w.end());
    return {};
  }
  Result<void> append(std::uint32_t trace, const model::Trace& more) override {
    if (trace >= recording.traces.size()) recording.traces.resize(std::size_t{trace} + 1);
    model::Trace& all = recording.traces[trace];
    static_cast<model::TracedProcess&>(all) = more;
    all.status = more.status;
    all.position = more.position;
    const auto add = [](const auto& from, auto& to) {
      to.insert(to.end(), from.begin(), from.end());
    };
    add(more.devices, all.devices);
    add(more.classes, all.classes);
    add(more.layers, all.layers);
    add(more.ranges, all.ranges);
    add(more.scopes, all.scopes);
    add(more.chunks, all.chunks);
    return {};
  }
  Result<void> commit() override { return {}; }

  // What a later part says is appended, or replaces what it describes anew.
  void append_all(const model::Recording& later) {
    if (!later.run.source.empty()) recording.run = later.run;
    const auto add_all = [this](const auto& items) {
      for (const auto& item : items) (void)add(item);
    };
    add_all(later.clock_points);
    add_all(later.domains);
    add_all(later.sensors);
    add_all(later.processes);
    add_all(later.idle_spans);
    add_all(later.warnings);
    if (later.overhead) recording.overhead = later.overhead;
    (void)append(later.readings);
    (void)append(later.process_readings);
    (void)append(later.windows);
    for (std::uint32_t i = 0; i < later.traces.size(); ++i) {
      if (later.traces[i].pid != 0) (void)append(i, later.traces[i]);
    }
  }

  // Keeps what is described: the run, domains, sensors and processes.
  void forget_series() {
    model::Recording kept;
    kept.run = std::move(recording.run);
    kept.domains = std::move(recording.domains);
    kept.sensors = std::move(recording.sensors);
    kept.processes = std::move(recording.processes);
    recording = std::move(kept);
  }
  Result<void> finish() override { return recording.run.complete = true, ok(); }

 private:
  static Result<void> ok() { return {}; }

  // One that was described before is replaced.
  template <typename T>
  static Result<void> put(std::vector<T>& all, const T& item) {
    const auto same = std::find_if(all.begin(), all.end(),
                                   [&item](const T& other) { return other.id == item.id; });
    if (same == all.end()) {
      all.push_back(item);
    } else {
      *same = item;
    }
    return {};
  }
};

}  // namespace jouleprof::session
