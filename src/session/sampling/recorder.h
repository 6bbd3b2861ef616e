// Writes what a session records on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "model/recording.h"
#include "session/sampling/recording_sink.h"

namespace jouleprof::session {

// What was not recorded, because the sink took nothing for so long that the queue was full.
struct RecordingLoss {
  HostTime begin{};
  HostTime end{};
  std::uint64_t readings = 0;
  std::uint64_t windows = 0;

  std::string text() const;
};

// Writes to a sink on a thread of its own, so that a slow disk delays neither the sampling nor the
// command.
//
// After the first error of the sink it records nothing more, and says which error that was. A sink
// that goes on in memory (Sink::trouble) is given all. Without a thread the caller writes.
// Readings and windows wait in at most `most_bytes`; while the queue is full, new ones are dropped
// and counted. Everything else is kept: it is small.
// Thread safety: one thread calls everything.
class Recorder {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  // nullptr: records nothing. The sink must outlive the recorder.
  explicit Recorder(Sink* sink, std::size_t most_bytes = kMostBytes);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  // Writes and commits soon. Returns at once.
  void post(Batch&& batch);
  // Posts without a limit: for a last batch, after which finish() waits for the sink.
  void post_last(Batch&& batch);

  std::optional<Error> error();

  // Whether all that was posted is committed. False where nothing is ever recorded.
  bool caught_up();

  // Whether a trace that was posted is not being written yet.
  bool has_waiting_traces();

  // Whether the last post() dropped something.
  bool is_losing() const { return losing_; }
  // What was dropped, once the queue has room again, or `now`.
  std::optional<RecordingLoss> take_loss(bool now = false);

  // Writes all that was posted and finishes the recording.
  Result<void> finish();

 private:
  void run();
  void stop(const char* why);
  void write_all(const Batch& batch, std::unique_lock<std::mutex>& lock);
  void post(Batch&& batch, bool limited);
  void drop_series_of(Batch& batch);

  Sink* const sink_;
  const std::size_t most_bytes_;
  bool losing_ = false;
  std::optional<RecordingLoss> loss_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable posted_;
  Batch waiting_;
  bool writing_ = false;
  bool closing_ = false;
  bool stopped_ = false;  // the sink takes no more
  std::optional<Error> error_;
  std::thread thread_;
};

}  // namespace jouleprof::session
