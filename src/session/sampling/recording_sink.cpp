#include "session/sampling/recording_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <ranges>
#include <unordered_map>

#include "recording/reader.h"
#include "session/sampling/recorder.h"

namespace jouleprof::session {
namespace {

// After this time in the work a recording has figures without the sensors that are silent by then.
constexpr Duration kLongestSilence = std::chrono::seconds{10};

// Whether a recording of these readings says something of the work: each sensor of energy has read
// since its begin, or those that do have for long.
bool has_figures(const model::Recording& recording) {
  const HostTime begin = recording.run.work_begin.value_or(HostTime::min());
  std::unordered_map<std::uint32_t, HostTime> last;
  const auto see = [&last](model::SensorId sensor, HostTime at) {
    HostTime& newest = last.try_emplace(static_cast<std::uint32_t>(sensor), at).first->second;
    newest = std::max(newest, at);
  };
  for (const auto& x : recording.readings.counters) see(x.sensor, x.after);
  for (const auto& x : recording.readings.powers) see(x.sensor, x.at);
  if (last.empty()) return !recording.readings.empty();
  const auto [oldest, newest] = std::ranges::minmax(last | std::views::values);
  return oldest > begin || newest - kLongestSilence > begin;
}

}  // namespace

Result<std::unique_ptr<RecordingSink>> RecordingSink::create(const std::filesystem::path& path,
                                                             bool overwrite,
                                                             std::size_t most_kept) {
  auto claim = recording::Claim::take(path, overwrite);
  if (!claim) return forward_error(claim);
  const bool later = claim->replaces();
  auto sink = std::make_unique<RecordingSink>(std::move(*claim), most_kept);
  if (later) return sink;
  sink->begin_file();
  if (sink->trouble_) return tl::unexpected(*sink->trouble_);
  return sink;
}

// Without a finish() for lack of memory.
RecordingSink::~RecordingSink() {
  writer_.reset();
  if (old_) old_->put_back();
}

void RecordingSink::begin_file() {
  const std::filesystem::path path = claim_->path();
  old_.emplace(OldFile::keep(path));
  Result<void> begun;
  try {
    begun = begin_at(path);
  } catch (const std::bad_alloc&) {
    begun = fail(Errc::kUnavailable, "out of memory");
  }
  if (begun) return;
  if (has_file_) return go_on_in_memory(begun.error());
  trouble_ = begun.error();  // what has the name now is not ours
  if (old_) old_->put_back();
  old_.reset();
}

Result<void> RecordingSink::begin_at(const std::filesystem::path& path) {
  auto writer = recording::Writer::create(std::move(*std::exchange(claim_, std::nullopt)));
  if (!writer) return forward_error(writer);
  path_ = path;
  writer_.emplace(std::move(*writer));
  has_file_ = true;
  auto written = recording::append_recording(*writer_, memory_.recording);
  return written ? commit_file() : written;
}

Result<void> RecordingSink::commit_file() {
  auto committed = writer_->commit();
  if (!committed) return committed;
  if (old_ && !has_figures(memory_.recording)) return {};  // it may still have to go
  old_.reset();
  memory_.forget_series();
  trace_bytes_ = 0;
  return {};
}

Result<void> RecordingSink::append(const Batch& batch) {
  if (is_full_) {
    Batch described = batch;
    described.drop_series();
    described.traces.clear();
    return memory_.append(described);
  }
  // Memory has it first: what a failing file did not take is then there.
  (void)memory_.append(batch);
  for (const auto& part : batch.traces) {
    for (const auto& chunk : part.more.chunks) trace_bytes_ += chunk.bytes.size();
  }
  if (claim_ && batch.run && batch.run->work_begin) {
    begin_file();
  } else if (writer_) {
    if (auto written = writer_->append(batch); !written) go_on_in_memory(written.error());
  }
  return {};
}

void RecordingSink::limit_memory() {
  const std::size_t bytes = recording::series_bytes(memory_.recording) + trace_bytes_;
  if (bytes <= most_kept_) return;
  is_full_ = true;
  trouble_->message += fmt::format(
      "; since then {} MiB were kept in memory, which is the most, and what was read later is lost",
      bytes >> 20);
}

Result<void> RecordingSink::commit() {
  // Nothing is computed at the end of these, which may be years away.
  const auto& source = memory_.recording.run.source;
  if (trouble_ && (source == "monitor" || source == "library")) memory_.forget_series();
  if (trouble_ && !is_full_) limit_memory();
  if (!writer_) return {};
  if (auto committed = commit_file(); !committed) go_on_in_memory(committed.error());
  return {};
}

Result<void> RecordingSink::finish() {
  if (writer_) {
    const auto finished = writer_->finish();
    if (finished) {
      old_.reset();
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
  if (old_) return remove();  // memory has all
  auto kept = recording::read_recording(path_);
  if (!kept) {  // even reading it needs a disk that is not full
    is_unreadable_ = true;
    return;
  }
  const MemorySink rest = std::exchange(memory_, MemorySink());
  memory_.recording = std::move(*kept);
  memory_.append_all(rest.recording);
  memory_.recording.run.complete = false;
  memory_.recording.run.being_written = false;
}

Result<model::Recording> RecordingSink::recording() const {
  if (has_file_ && (!trouble_ || is_unreadable_)) return recording::read_recording(path_);
  return memory_.recording;
}

void RecordingSink::remove() {
  writer_.reset();
  claim_.reset();
  has_file_ = false;
  if (!path_.empty()) recording::remove_recording(path_);
  if (old_) old_->put_back();
  old_.reset();
}

}  // namespace jouleprof::session
