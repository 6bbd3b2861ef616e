// The layers of all threads of this process, for its tracer. Private to this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/activity/activity.h"
#include "spans/layers/thread_layers.h"

namespace jouleprof::layers {

// Thread safety: all functions from any thread; send() and start() from one at a time.
class ThreadLayersList {
 public:
  // Never destroyed: threads call layers while the process exits.
  static ThreadLayersList& all();

  // For the calling thread; nullptr: there are too many threads, or no memory.
  ThreadLayers* add() noexcept;
  // The thread ends: another thread may use its place.
  void end(ThreadLayers* thread) noexcept;

  // For the thread of this number (PyTorch's); nullptr: there are too many threads, or no memory.
  SequenceRing* add_ring(std::uint64_t thread) noexcept;
  // That of a thread; nullptr: it has none. Takes no lock.
  static const SequenceRing* find_ring(std::uint64_t thread) noexcept;

  // As send() and forget() of layers.h.
  void send(model::ActivitySink& sink, HostTime now);
  void forget_all();
  // Begins the time of the first chunk.
  void start() { reported_ = HostClock::now(); }

  std::string problem();
  void add_problem(const std::string& text);

 private:
  void after_fork();
  void drop();

  std::mutex mutex_;  // guards all but reported_
  std::vector<std::unique_ptr<ThreadLayers>> threads_;
  std::vector<ThreadLayers*> free_;
  std::size_t next_ring_ = 0;
  std::string problem_;
  HostTime reported_ = HostClock::now();  // the end of the last chunk
};

}  // namespace jouleprof::layers
