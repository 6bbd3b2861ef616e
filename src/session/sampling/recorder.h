// Writes to a sink on a thread of its own, so that a slow disk delays nobody.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "model/recording.h"
#include "session/sampling/sink.h"

namespace jouleprof::session {

// Things to record, in any amount.
struct Batch {
  std::optional<model::RunInfo> run;
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

  bool empty() const;
  void append(Batch&& later);
};

// After the first error of the sink it records nothing more, and says which error that was.
// Thread safety: one thread calls everything.
class Recorder {
 public:
  explicit Recorder(Sink* sink);  // nullptr: records nothing. Must outlive the recorder.
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  // Writes and commits soon. Returns at once.
  void post(Batch&& batch);

  std::optional<Error> error();

  // Whether all that was posted is committed, or will never be because nothing is recorded at all.
  bool caught_up();

  // Writes all that was posted and finishes the recording.
  Result<void> finish();

 private:
  void run();
  Result<void> write(const Batch& batch);

  Sink* sink_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable posted_;
  Batch waiting_;
  bool writing_ = false;
  bool closing_ = false;
  std::optional<Error> error_;
  std::thread thread_;
};

}  // namespace jouleprof::session
