// Whether CUDA graphs are recorded node by node or a launch at a time, and the switch between both.
#pragma once

#include <pthread.h>

#include <atomic>

#include "spans/cupti/cupti_api.h"

namespace jouleprof::cupti {

// CUPTI (13.0) crashes when the mode is switched during a launch of a graph. Without callbacks on
// the making of graphs it also crashes at the launch, recorded as a whole, of a graph that was made
// executable in the other mode. Therefore the launching thread switches between two launches of any
// thread, and launches are recorded as a whole while a graph is made executable. Thread safety: all
// functions from any thread, but start() and stop().
class GraphMode {
 public:
  explicit GraphMode(const CuptiApi& api) : api_(api) {}

  // From now on launches are recorded as a whole. Without start() they are recorded node by node.
  void start();
  void stop();
  // Node by node, or as a whole where possible: after the next launch. `every`: the graphs made
  // from now on are never launched afterwards; making them executable then takes no lock.
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
