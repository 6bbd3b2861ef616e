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

using recording::append_parts;
using recording::append_trace;
using recording::Batch;
using recording::Sink;

class MemorySink : public Sink {
 public:
  // To be read once the session has ended.
  model::Recording recording;

  Result<void> append(const Batch& batch) override {
    if (batch.run) recording.run = *batch.run;
    append_parts(recording, batch);
    for (const auto& [trace, more] : batch.traces) add(trace, more);
    return {};
  }
  Result<void> commit() override { return {}; }
  Result<void> finish() override {
    recording.run.complete = true;
    return {};
  }

  // What a later part says is appended, or replaces what it describes anew.
  void append_all(const model::Recording& later) {
    if (!later.run.source.empty()) recording.run = later.run;
    append_parts(recording, later);
    for (std::uint32_t i = 0; i < later.traces.size(); ++i) {
      if (later.traces[i].pid != 0) add(i, later.traces[i]);
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

 private:
  void add(std::uint32_t trace, const model::Trace& more) {
    if (trace >= recording.traces.size()) recording.traces.resize(std::size_t{trace} + 1);
    append_trace(recording.traces[trace], more);
  }
};

// A recording's file as a sink, and memory before and after it.
// A file that is to be replaced stays until the work begins (RunInfo::work_begin); what comes
// before is kept in memory. It comes back where the new one gets no readings. When the file takes
// no more, all that it has and what follows is kept in memory, so that the figures of the run are
// still there at its end; of a run that goes on for long, the first `most_kept` bytes. What was
// read later is lost then, and trouble() says so.
class RecordingSink final : public Sink {
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

  Result<void> append(const Batch& batch) override;
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
