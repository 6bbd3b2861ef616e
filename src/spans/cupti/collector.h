// CUPTI's callbacks: takes full buffers, and records the scope of each launch.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "spans/cupti/aggregate/graph_templates.h"
#include "spans/cupti/cupti_api.h"
#include "spans/cupti/record_modes.h"
#include "spans/cupti/records.h"

namespace jouleprof::cupti {

// One at a time in a process, because CUPTI hands buffers to plain functions. It is never destroyed
// once it was started: CUPTI may call at any time.
class Collector {
 public:
  // `wake` is called, from any thread, when a buffer is full.
  Collector(CuptiApi api, std::size_t most_buffers, std::function<void()> wake);

  // Turns records and callbacks on. `whole_graphs`: a graph's launch may be one record; not where
  // graphs may have been made executable already (CUPTI crashes at their launch). `every_memset`:
  // small memsets are recorded, too (MemsetRecords); without `whole_graphs` they are. Errors:
  // unavailable, unsupported, permission_denied: there are no records at all. problem() says why
  // there are no callbacks, or no records of copies.
  Result<void> start(bool whole_graphs, bool every_memset);
  // Turns them off. Not while the process exits: the driver may be unloaded.
  void stop();
  // After a fork, in the child: ignores all later calls of CUPTI.
  static void forget() noexcept;

  // Is also given the driver's calls that launch kernels, set or free memory, and change graphs or
  // code, and the code that is about to be unloaded. For the process; to be set before start().
  struct Listener {
    void (*on_call)(abi::cupti::DriverCall call, const abi::cupti::CallbackData& data);
    void (*on_unload)(const abi::cupti::ModuleData& code);
  };
  static void listen(const Listener* listener) noexcept;

  // CUDA graphs node by node, or one record a launch where those may be: from the next launch on.
  // `every`: as GraphMode has it.
  void graph_nodes(bool nodes, bool every) { graphs_.want_nodes(nodes, every); }
  // Launch callbacks of the runtime's calls too; those of the driver's calls are always on.
  void watch_runtime_calls();

  const CuptiApi& api() const { return api_; }
  BufferPool& buffers() { return buffers_; }
  const CorrelationTable& launches() const { return launches_; }
  const GraphNodes& nodes() const { return nodes_; }
  MemsetRecords& memsets() { return memsets_; }
  const MemsetRecords& memsets() const { return memsets_; }
  bool subscribed() const { return subscriber_ != nullptr; }
  const std::string& problem() const { return problem_; }

  std::uint32_t last_launch() const { return last_launch_.load(std::memory_order_relaxed); }
  std::uint64_t graph_launches() const { return graph_launches_.load(std::memory_order_relaxed); }
  // Records that CUPTI had no room for since the last call.
  std::uint64_t take_dropped();
  // The launches that were not recorded, on purpose, since the last call.
  std::vector<UnrecordedLaunch> take_unrecorded();

 private:
  static abi::cupti::BufferRequested buffer_requested;
  static abi::cupti::BufferCompleted buffer_completed;
  static abi::cupti::Callback callback;

  Result<void> enable();
  void note_missing(abi::cupti::ActivityKind kind, abi::cupti::Result result);
  void add_problem(const std::string& problem);
  void subscribe();
  void on_launch(abi::cupti::Domain domain, std::uint32_t call,
                 const abi::cupti::CallbackData& data) noexcept;
  void on_driver_call(abi::cupti::DriverCall call, const abi::cupti::CallbackData& data) noexcept;
  void on_graph_launch(const abi::cupti::CallbackData& data) noexcept;
  void on_graph_node(std::uint32_t call, const abi::cupti::GraphData& data) noexcept;
  std::string words(abi::cupti::Result result) const;

  CuptiApi api_;
  BufferPool buffers_;
  std::function<void()> wake_;
  CorrelationTable launches_;
  GraphNodes nodes_;
  abi::cupti::Subscriber subscriber_ = nullptr;
  GraphMode graphs_{api_};
  MemsetRecords memsets_{api_};
  std::string problem_;
  std::atomic<std::uint32_t> last_launch_{0};
  std::atomic<std::uint64_t> graph_launches_{0};
  std::mutex unrecorded_mutex_;
  std::vector<UnrecordedLaunch> unrecorded_;
};

}  // namespace jouleprof::cupti
