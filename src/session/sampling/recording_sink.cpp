#include "session/sampling/recording_sink.h"

#include <utility>

#include "base/new_file.h"
#include "recording/reader.h"
#include "recording/side_files.h"

namespace jouleprof::session {

Result<std::unique_ptr<RecordingSink>> RecordingSink::create(const std::filesystem::path& path,
                                                             bool overwrite) {
  auto claim = recording::Claim::take(path, overwrite);
  if (!claim) return forward_error(claim);
  const bool later = claim->replaces();
  auto sink = std::make_unique<RecordingSink>(std::move(*claim));
  if (later) return sink;
  sink->begin_file();
  if (sink->trouble_) return tl::unexpected(*sink->trouble_);
  return sink;
}

void RecordingSink::begin_file() {
  const std::filesystem::path path = claim_->path();
  auto old = OldFile::keep(path);
  auto writer = recording::Writer::create(std::move(*std::exchange(claim_, std::nullopt)));
  if (!writer) {
    trouble_ = writer.error();
    return;
  }
  path_ = path;
  writer_.emplace(std::move(*writer));
  has_file_ = true;
  auto written = recording::append_recording(*writer_, memory_.recording);
  if (written) written = writer_->commit();
  if (written) return memory_.forget_series();
  writer_.reset();
  recording::remove_side_files(path);
  if (!old.put_back()) return go_on_in_memory(written.error());
  trouble_ = written.error();
  path_.clear();
  has_file_ = false;
}

Result<void> RecordingSink::set_run(const model::RunInfo& run) {
  (void)change([&run](auto& sink) { return sink.set_run(run); });
  if (claim_ && run.work_begin) begin_file();
  return {};
}

Result<void> RecordingSink::set_overhead(const model::Overhead& overhead) {
  return change([&overhead](auto& sink) { return sink.set_overhead(overhead); });
}

Result<void> RecordingSink::append(std::uint32_t trace, const model::Trace& more) {
  return change([&](auto& sink) { return sink.append(trace, more); });
}

Result<void> RecordingSink::commit() {
  // Nothing is computed of a monitor's recording at its end, which may be years away.
  if (trouble_ && memory_.recording.run.source == "monitor") memory_.forget_series();
  if (!writer_) return {};
  if (auto committed = writer_->commit(); !committed) {
    go_on_in_memory(committed.error());
  } else {
    memory_.forget_series();
  }
  return {};
}

Result<void> RecordingSink::finish() {
  if (writer_) {
    const auto finished = writer_->finish();
    if (finished) {
      writer_.reset();
      return {};
    }
    const auto whole = recording::read_recording(path_);
    if (whole && whole->run.complete) {  // only its side files stay
      writer_.reset();
      return finished;
    }
    go_on_in_memory(finished.error());
  }
  if (trouble_) return tl::unexpected(*trouble_);
  return memory_.finish();
}

// What is in the file, and then what is not.
void RecordingSink::go_on_in_memory(const Error& error) {
  trouble_ = error;
  writer_.reset();
  auto kept = recording::read_recording(path_);
  has_file_ = kept.has_value();
  if (!kept) {
    memory_.recording.traces.clear();  // parts without a beginning
    return remove();
  }
  const MemorySink rest = std::exchange(memory_, MemorySink());
  memory_.recording = std::move(*kept);
  memory_.append_all(rest.recording);
  memory_.recording.run.complete = false;
}

Result<model::Recording> RecordingSink::recording() const {
  if (has_file_ && !trouble_) return recording::read_recording(path_);
  return memory_.recording;
}

void RecordingSink::remove() {
  writer_.reset();
  claim_.reset();
  has_file_ = false;
  if (!path_.empty()) recording::remove_recording(path_);
}

}  // namespace jouleprof::session
