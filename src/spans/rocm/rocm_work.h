// Kernels and copies of AMD's GPUs, as rocprofiler-sdk records them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "abi/rocprofiler_abi.h"
#include "base/result.h"
#include "spans/cupti/aggregate/activity_aggregator.h"
#include "spans/cupti/records.h"
#include "spans/cupti/tracer.h"

namespace jouleprof::rocm {

// rocprofiler-sdk as a struct of function pointers.
struct RocprofilerApi {
  abi::rocprofiler::fn::CreateContext* create_context = nullptr;
  abi::rocprofiler::fn::StartContext* start_context = nullptr;
  abi::rocprofiler::fn::StopContext* stop_context = nullptr;
  abi::rocprofiler::fn::CreateBuffer* create_buffer = nullptr;
  abi::rocprofiler::fn::FlushBuffer* flush_buffer = nullptr;
  abi::rocprofiler::fn::ConfigureBufferTracingService* buffer_tracing = nullptr;
  abi::rocprofiler::fn::ConfigureCallbackTracingService* callback_tracing = nullptr;
  abi::rocprofiler::fn::QueryAvailableAgents* agents = nullptr;
  abi::rocprofiler::fn::GetTimestamp* timestamp = nullptr;
  // May be absent: without it no launch has a layer or range.
  abi::rocprofiler::fn::ConfigureExternalCorrelationIdRequestService* correlation = nullptr;
  abi::rocprofiler::fn::GetStatusString* status_text = nullptr;  // may be absent

  std::uint32_t version = 0;

  // The functions of the library that this process has loaded, which called with `version`. Errors:
  // unsupported, with what to install.
  static Result<RocprofilerApi> loaded(std::uint32_t version);
};

struct RocmOptions {
  bool events = false;                 // keep each launch
  std::filesystem::path root = "/";    // of /sys
  std::size_t most_waiting = 400'000;  // records between two rounds; those beyond are dropped
};

// The identifiers of a board: "0000:c1:00.0" of an agent, whichever partition of the board it is;
// "GPU-..." of what the driver shows as its unique number. Empty where it shows none.
std::string bus_address(const abi::rocprofiler::Agent& agent);
std::string board_uuid(const std::filesystem::path& root, const std::string& bus_address);

// Is never destroyed once it was started: the library may call at any time.
class RocmWork final : public cupti::WorkSource {
 public:
  // Within a tool's initialisation (ConfigureResult::initialize). Errors: unavailable, with the
  // library's own words.
  static Result<std::unique_ptr<WorkSource>> start(const RocprofilerApi& api, RocmOptions options,
                                                   model::ActivitySink& sink,
                                                   std::function<void()> wake);

  void drain() override;
  void collect(bool all) override;
  void send() override { aggregator_.send(); }
  void add_to(model::TraceStatus& status) const override;
  void stop() override { close(); }
  // The library is about to end: takes what it has, and calls it no more.
  void close();

 private:
  // What is used of a record, which is the library's until its callback returns.
  struct Record {
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::uint64_t agent = 0;
    std::uint64_t queue = 0;
    std::uint64_t kernel = 0;
    std::uint64_t bytes = 0;
    abi::rocprofiler::Size3 grid{};
    abi::rocprofiler::Size3 workgroup{};
    std::uint32_t scope = model::kNone;
    std::uint32_t correlation = 0;
    unsigned copy_kind = 0;  // CUPTI's; 0: a kernel
  };

  RocmWork(const RocprofilerApi& api, RocmOptions options, model::ActivitySink& sink,
           std::function<void()> wake);

  Result<void> configure();
  void find_devices();
  void take_clock();
  void add_problem(const std::string& problem);
  void take(const Record& record);
  void hand_over(abi::rocprofiler::RecordHeader** headers, std::size_t count,
                 std::uint64_t dropped) noexcept;
  void define_kernel(const abi::rocprofiler::KernelSymbol& symbol) noexcept;
  void on_marker(std::int32_t operation, int phase,
                 const abi::rocprofiler::MarkerCall& call) noexcept;
  template <typename CallbackRecord>
  static void on_callback(CallbackRecord record, std::uint64_t* user, void* data) noexcept;
  std::string words(abi::rocprofiler::Status status) const;

  const RocprofilerApi api_;
  const RocmOptions options_;
  std::function<void()> wake_;
  cupti::KernelClasses classes_;
  cupti::ActivityAggregator aggregator_;
  std::unique_ptr<cupti::StampConverter> stamps_;
  HostTime first_{};
  std::unordered_map<std::uint64_t, std::uint32_t> ordinals_;  // of agents
  std::string problem_;
  std::uint64_t without_times_ = 0;
  std::uint64_t dropped_ = 0;
  std::vector<Record> taken_;

  std::mutex library_mutex_;  // guards calls of the library, and what follows
  bool closed_ = false;
  abi::rocprofiler::Context context_{};
  abi::rocprofiler::Buffer buffer_{};

  std::mutex mutex_;  // guards what follows
  std::vector<Record> waiting_;
  std::unordered_map<std::uint64_t, std::string> names_;  // of kernels; never removed
  std::map<std::uint64_t, std::uint64_t> ranges_;         // that were started: ours by ROCTX's
  std::uint64_t lost_ = 0;                                // of unknown layout, or beyond the bound
  std::uint64_t library_lost_ = 0;
  std::uint64_t library_count_ = 0;
};

}  // namespace jouleprof::rocm
