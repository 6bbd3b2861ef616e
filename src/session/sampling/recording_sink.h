// Where a session puts what it records: a file, or memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "model/recording.h"
#include "recording/writer.h"

namespace jouleprof::session {

using recording::ForwardingSink;
using recording::Sink;

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
    const auto same = std::ranges::find(all, item.id, &T::id);
    if (same == all.end()) {
      all.push_back(item);
    } else {
      *same = item;
    }
    return {};
  }
};

// A recording's file as a sink, and memory before and after it.
// A file that is to be replaced stays until the work begins (RunInfo::work_begin); what comes
// before is kept in memory. It comes back where the new one gets no readings. When the file takes
// no more, all that it has and what follows is kept in memory, so that the figures of the run are
// still there at its end; of a run that goes on for long, the first `most_kept` bytes. What was
// read later is lost then, and trouble() says so.
class RecordingSink final : public ForwardingSink {
 public:
  // Errors: as Claim::take's and Writer::create's.
  static constexpr std::size_t kMostKept = std::size_t{256} << 20;
  static Result<std::unique_ptr<RecordingSink>> create(const std::filesystem::path& path,
                                                       bool overwrite,
                                                       std::size_t most_kept = kMostKept);
  RecordingSink(recording::Claim claim, std::size_t most_kept)
      : most_kept_(most_kept), claim_(std::move(claim)) {}
  RecordingSink(const RecordingSink&) = delete;
  RecordingSink& operator=(const RecordingSink&) = delete;
  ~RecordingSink() override;

  Result<void> set_run(const model::RunInfo& run) override;
  using ForwardingSink::append;
  Result<void> append(const model::Readings& readings) override { return more(readings); }
  Result<void> append(const model::ProcessReadings& readings) override { return more(readings); }
  Result<void> append(const std::vector<model::Window>& windows) override { return more(windows); }
  Result<void> append(std::uint32_t trace, const model::Trace& more) override;
  Result<void> commit() override;
  Result<void> finish() override;
  std::optional<Error> trouble() const override { return trouble_; }

  // After the session. Whether the file was begun and holds a recording, whole or not.
  bool has_file() const { return has_file_; }
  // After the session: from the file, or from memory. Errors: as read_recording's.
  Result<model::Recording> recording() const;
  // Removes the file, where it was begun: nothing was measured.
  void remove();

 private:
  // Memory has it first: what a failing file did not take is then there.
  Result<void> forward(const Call& call) override {
    (void)call(memory_);
    if (!writer_) return {};
    if (auto written = call(*writer_); !written) go_on_in_memory(written.error());
    return {};
  }
  template <typename T>
  Result<void> more(const T& items) {
    return is_full_ ? Result<void>{} : ForwardingSink::append(items);
  }
  void begin_file();
  Result<void> begin_at(const std::filesystem::path& path);
  Result<void> commit_file();
  void go_on_in_memory(const Error& error);
  void limit_memory();

  const std::size_t most_kept_;
  std::optional<recording::Claim> claim_;  // until the file is begun
  std::filesystem::path path_;
  std::optional<recording::Writer> writer_;
  std::optional<OldFile> old_;  // until the new one is a recording
  MemorySink memory_;           // all, or with a writer what is not committed
  bool has_file_ = false;
  bool is_unreadable_ = false;  // now; and memory has only what came later
  std::optional<Error> trouble_;
  std::size_t trace_bytes_ = 0;  // in memory
  bool is_full_ = false;         // memory: nothing more is kept
};

}  // namespace jouleprof::session
