// Whether CUDA graphs are recorded node by node or a launch at a time, and the switch between both.
#pragma once

#include <pthread.h>

#include <atomic>

#include "spans/cupti/cupti_api.h"

namespace jouleprof::cupti {

// CUPTI (13.0) crashes where it is switched while a graph is launched; and, in a program that does
// not watch graphs being made as this one does, where a graph that was made executable while there
// were no records of whole launches is launched when there are. So the thread that launches
// switches, between two launches of any thread, and there are records of whole launches while a
// graph is made executable. Thread safety: all functions from any thread, but start() and stop().
class GraphMode {
 public:
  explicit GraphMode(const CuptiApi& api) : api_(api) {}

  // From here on launches are recorded whole. Without it, node by node for good.
  void start();
  void stop();
  // Node by node, or whole where that may be: after the next launch. `every`: for as long as graphs
  // are made that are never launched afterwards; then nothing is held for them.
  void want_nodes(bool nodes, bool every = false) {
    every_.store(every, std::memory_order_relaxed);
    nodes_wanted_.store(nodes || every, std::memory_order_relaxed);
  }

  // CUPTI's callbacks: the driver's calls that launch graphs and that make them executable, and the
  // beginning of the latter by whatever way.
  void on_launch(abi::cupti::Site site) noexcept;
  void on_instantiation(abi::cupti::Site site) noexcept;
  void on_creation() noexcept;

 private:
  bool hold_whole() noexcept;
  void record(bool whole) noexcept;

  const CuptiApi& api_;
  std::atomic<bool> may_switch_{false};
  std::atomic<bool> nodes_wanted_{false};
  std::atomic<bool> every_{false};
  std::atomic<bool> whole_{false};
  // Held to read while a graph is launched or made executable, to write while switching.
  pthread_rwlock_t in_use_ = PTHREAD_RWLOCK_INITIALIZER;
};

}  // namespace jouleprof::cupti
