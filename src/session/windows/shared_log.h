// One log of several monitors: what a monitor measures that is opened later is in the first one's.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "session/sampling/recording_sink.h"

namespace jouleprof::session {

// Thread safety: its sinks may be used by one thread each.
class SharedLog : public std::enable_shared_from_this<SharedLog> {
 public:
  explicit SharedLog(std::unique_ptr<Sink> file) : file_(std::move(file)) {}

  // The sink of the first monitor. When it finishes the file, those of later ones take no more.
  std::unique_ptr<Sink> first();

  // A sink of a monitor that is opened after the first one: domains and sensors have numbers of
  // their own in the file, and their readings and warnings are recorded. The run, its windows and
  // processes are the first one's.
  std::unique_ptr<Sink> later();

 private:
  class First;
  class Later;
  Result<void> append(const Batch& batch);  // mutex_ is held

  std::mutex mutex_;  // guards what follows
  const std::unique_ptr<Sink> file_;
  bool is_finished_ = false;
  std::uint32_t domains_ = 0;  // one more than the greatest number
  std::uint32_t sensors_ = 0;
};

}  // namespace jouleprof::session
