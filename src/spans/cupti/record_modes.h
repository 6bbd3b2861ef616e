// Which records CUPTI makes of CUDA graphs and of memsets, and when that changes.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/clock.h"
#include "model/activity/activity.h"
#include "spans/cupti/cupti_api.h"

namespace jouleprof::cupti {

// Whether CUDA graphs are recorded node by node or a launch at a time, and the switch between both.
// CUPTI (13.0) crashes when the mode is switched during a launch of a graph. Without callbacks on
// the making of graphs it also crashes at the launch, recorded as a whole, of a graph that was made
// executable in the other mode. Therefore the launching thread switches between two launches of any
// thread, and launches are recorded as a whole while a graph is made executable.
//
// A graph that was launched node by node stays slow (2 to 10 %), also when it is recorded as a
// whole again, until one launch of it is not recorded at all (observed with CUPTI 13.0 and driver
// 580, not documented). So its next launch is left out. on_launch() says which one that is.
//
// Thread safety: all functions from any thread, but start() and stop().
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
  // beginning of the latter by whatever way; the end of an executable graph. on_launch() returns
  // true at the beginning of a launch that is not recorded.
  bool on_launch(abi::cupti::Site site, abi::cupti::GraphExec graph) noexcept;
  void on_instantiation(abi::cupti::Site site) noexcept;
  void on_creation() noexcept;
  // Before an executable graph is changed. Launched as a whole after that, it fails the program
  // (CUPTI 13.0 and driver 580; XLA changes its graphs in each step): nodes from now on.
  void on_update() noexcept;
  void on_destruction(abi::cupti::GraphExec graph) noexcept;

 private:
  enum class Within { kNothing, kLaunch, kUnrecorded };

  void begin_launch(abi::cupti::GraphExec graph, Within& within) noexcept;
  void end_unrecorded() noexcept;
  bool hold_whole() noexcept;
  void record(bool whole) noexcept;
  void note_slow(abi::cupti::GraphExec graph) noexcept;
  bool is_slow(abi::cupti::GraphExec graph) noexcept;

  const CuptiApi& api_;
  std::atomic<bool> may_switch_{false};
  std::atomic<bool> nodes_wanted_{false};
  std::atomic<bool> every_{false};
  std::atomic<bool> whole_{false};
  // Held to read while a graph is launched or made executable, to write while switching.
  pthread_rwlock_t in_use_ = PTHREAD_RWLOCK_INITIALIZER;

  // Launched node by node, and not left out since.
  std::mutex slow_mutex_;
  std::unordered_set<abi::cupti::GraphExec> slow_;
  std::atomic<std::size_t> slow_count_{0};
};

// The scope in which each node of a CUDA graph was captured.
// A destroyed node is kept for some time: records of its launches may still arrive. Thread safety:
// all functions from any thread.
class GraphNodes {
 public:
  void created(std::uint64_t node, std::uint32_t scope) noexcept;
  void cloned(std::uint64_t node, std::uint64_t original) noexcept;
  void destroyed(std::uint64_t node) noexcept;
  std::uint32_t scope(std::uint64_t node) const noexcept;  // model::kNone: not known

 private:
  static constexpr std::size_t kMost = 1'000'000;  // about 50 MB

  static constexpr std::size_t kMostGone = 100'000;

  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint32_t> scopes_;  // nodes without a scope are not here
  std::deque<std::uint64_t> gone_;
};

// When launches of CUDA graphs are recorded node by node, and when, cheaply, as one record each.
// One record each from the start (CUPTI crashes when this is enabled only after a graph was made
// executable); node by node for a few launches now and then: 20 ms after a graph was first
// launched, 1 s later, 2 s, ... and finally every minute; sooner again after the launch of a graph
// without recorded nodes. Two such times never begin within one second.
class GraphSampler {
 public:
  // Counts since the process's start.
  struct Seen {
    std::uint64_t launches = 0;        // of graphs
    std::uint64_t unknown_graphs = 0;  // launched, and their nodes not seen or not valid
  };

  // Whether node by node from now on.
  bool nodes(HostTime now, const Seen& seen);

  // When to call nodes() again; absent: any time.
  std::optional<HostTime> next() const { return next_; }

 private:
  bool begin(HostTime now, const Seen& seen);
  bool end(HostTime now);

  bool nodes_ = false;
  std::optional<HostTime> next_;
  HostTime begun_{};
  std::uint64_t launches_before_ = 0;
  std::uint64_t unknown_before_ = 0;
  Duration interval_ = std::chrono::seconds{1};
};

// Which memsets CUPTI records: small ones are left out while they are few.
// Recording a memset takes the GPU 1.3 to 1.8 us (two H100s, CUPTI 13.0), longer than one of a few
// bytes itself, and cuBLAS makes such a memset before many matrix products: 0.9 % of DeiT-B at
// batch 64 (docs/costs.md). Records are therefore enabled only during the calls that set
// kLeastBytes or more. All are recorded
//
// - from the first CUDA graph on, whose nodes are recorded as they were when it was made;
// - once kMostLeftOut a second were left out: they would take more than 5 % of the time.
//
// Thread safety: on_call() and record_all() from any thread; the others from one.
class MemsetRecords {
 public:
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20;
  static constexpr std::uint64_t kMostLeftOut = 50'000;

  explicit MemsetRecords(const CuptiApi& api) : api_(api) {}

  // From now on small ones are left out, where their records were enabled before.
  void leave_out_small();
  // From now on none is. It may be called from any callback of CUPTI.
  void record_all() noexcept;

  // CUPTI's callbacks of the driver's calls that memset_bytes() knows.
  void on_call(abi::cupti::Site site, std::uint64_t bytes) noexcept;
  // To be called about once a second.
  void adapt(HostTime now);

  // Memsets, at most: one during a large one of another thread may have been recorded.
  std::uint64_t left_out() const { return left_out_.load(std::memory_order_relaxed); }

 private:
  void begin_large() noexcept;
  void end_large() noexcept;

  const CuptiApi& api_;
  std::atomic<bool> leaves_out_{false};
  std::atomic<std::uint64_t> left_out_{0};
  std::mutex large_mutex_;
  int large_ = 0;  // calls under way

  std::optional<HostTime> looked_;
  std::uint64_t left_out_before_ = 0;
};

// The bytes that a call of the driver sets; absent for other calls.
std::optional<std::uint64_t> memset_bytes(abi::cupti::DriverCall call, const void* parameters);

}  // namespace jouleprof::cupti
