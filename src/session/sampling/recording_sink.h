// A recording's file as a sink, and memory before and after it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "base/new_file.h"
#include "recording/writer.h"
#include "session/sampling/memory_sink.h"
#include "session/sampling/sink.h"

namespace jouleprof::session {

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

  Result<void> set_run(const model::RunInfo& run) override;
  Result<void> add(const ClockPoint& point) override { return put(point); }
  Result<void> add(const model::Domain& domain) override { return put(domain); }
  Result<void> add(const model::Sensor& sensor) override { return put(sensor); }
  Result<void> add(const model::Process& process) override { return put(process); }
  Result<void> add(const model::IdleSpan& span) override { return put(span); }
  Result<void> add(const model::Warning& warning) override { return put(warning); }
  Result<void> set_overhead(const model::Overhead& overhead) override;
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
  template <typename Change>
  Result<void> change(const Change& change) {
    (void)change(memory_);
    if (!writer_) return {};
    if (auto written = change(*writer_); !written) go_on_in_memory(written.error());
    return {};
  }
  template <typename T>
  Result<void> put(const T& item) {
    return change([&item](auto& sink) { return sink.add(item); });
  }
  template <typename T>
  Result<void> more(const T& items) {
    if (is_full_) return {};
    return change([&items](auto& sink) { return sink.append(items); });
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
