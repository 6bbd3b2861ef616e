// A rocprofiler-sdk for tests, with records of a program that a test makes up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "abi/rocprofiler_abi.h"

namespace jouleprof::rocm {

// Plain functions, so one of them at a time. It behaves as AMD's: configuration within the tools'
// initialisation only, records on a thread of its own, a clock of its own.
struct FakeRocprofiler {
  static constexpr abi::rocprofiler::Status kError = 1;
  static constexpr abi::rocprofiler::Status kLocked = 16;
  static constexpr abi::rocprofiler::Status kFinalized = 21;
  static constexpr std::uint64_t kAhead = 777'000'000'000;  // nanoseconds, of CLOCK_BOOTTIME

  // The records of 1.0, longer than what is declared of them.
  struct Dispatch : abi::rocprofiler::KernelDispatch {
    unsigned char reserved[56];
    std::uint64_t newer;
  };
  struct Copy : abi::rocprofiler::MemoryCopy {
    std::uint64_t addresses[2];
  };
  struct Agent : abi::rocprofiler::Agent {
    std::uint64_t newer[8];
  };

  std::uint32_t version = abi::rocprofiler::kVersion1 + 100;
  bool configuring = true;
  bool finalized = false;
  bool started = false;
  std::set<std::string> refused;  // services: "context", "copies", "markers", "correlation", ...
  std::vector<std::pair<std::uint32_t, std::uint32_t>> gpus;  // domain and location of each agent
  std::uint64_t dropped = 0;

  std::mutex mutex;
  std::vector<Dispatch> dispatches;
  std::vector<Copy> copies;
  abi::rocprofiler::BufferCallback* on_buffer = nullptr;
  void* buffer_data = nullptr;
  std::map<int, std::pair<void (*)(), void*>> callbacks;  // by kind
  abi::rocprofiler::CorrelationRequest* request = nullptr;
  void* request_data = nullptr;
  std::map<std::string, std::uint64_t> kernels;
  std::set<int> traced;  // kinds
  std::uint64_t launches = 0;

  static FakeRocprofiler*& now() {
    static FakeRocprofiler* fake = nullptr;
    return fake;
  }
  FakeRocprofiler() { now() = this; }
  ~FakeRocprofiler() { now() = nullptr; }

  static std::uint64_t stamp() {
    timespec at{};
    clock_gettime(CLOCK_BOOTTIME, &at);
    return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(at.tv_nsec) + kAhead;
  }

  // --- What a program does ---

  void call(int kind, std::int32_t operation, int phase, void* payload) {
    const auto found = callbacks.find(kind);
    if (found == callbacks.end() || !started) return;
    std::uint64_t user = 0;
    const auto fill = [&](auto record) {
      record.kind = kind;
      record.operation = operation;
      record.phase = phase;
      record.payload = payload;
      return record;
    };
    if (version >= abi::rocprofiler::kVersion1) {
      reinterpret_cast<abi::rocprofiler::Callback*>(found->second.first)(
          fill(abi::rocprofiler::CallbackRecord{}), &user, found->second.second);
    } else {
      reinterpret_cast<abi::rocprofiler::Callback0*>(found->second.first)(
          fill(abi::rocprofiler::CallbackRecord0{}), &user, found->second.second);
    }
  }

  std::uint64_t kernel(const std::string& name) {
    const auto [found, is_new] = kernels.emplace(name, kernels.size() + 41);
    if (is_new) {
      const std::string symbol = name + ".kd";
      abi::rocprofiler::KernelSymbol data{sizeof data, found->second, 1, symbol.c_str()};
      call(abi::rocprofiler::kCallbackCodeObject, abi::rocprofiler::kKernelSymbol,
           abi::rocprofiler::kPhaseEnter, &data);
    }
    return found->second;
  }

  std::uint64_t external(int kind) {
    std::uint64_t value = 0;
    if (request == nullptr || request(1, {7}, kind, 1, launches, &value, request_data) != 0) {
      return 0;
    }
    return value;
  }

  // On the GPU of agent `gpu`, in stamps.
  Dispatch& launch(const std::string& name, std::uint64_t start, std::uint64_t end,
                   std::size_t gpu = 0) {
    namespace abi = abi::rocprofiler;
    Dispatch d{};
    d.size = sizeof d;
    d.kind = abi::kBufferKernelDispatch;
    d.operation = 2;
    d.correlation = {++launches, external(abi::kRequestKernelDispatch)};
    d.start = start;
    d.end = end;
    d.info.size = sizeof d.info;
    d.info.agent.handle = 1000 + gpu;
    d.info.queue = 3;
    d.info.kernel = kernel(name);
    d.info.workgroup = {256, 1, 1};
    d.info.grid = {1000, 4, 1};
    const std::scoped_lock lock(mutex);
    return dispatches.emplace_back(d);
  }

  void copy(abi::rocprofiler::CopyKind kind, std::uint64_t bytes, std::uint64_t start,
            std::uint64_t end) {
    namespace abi = abi::rocprofiler;
    Copy c{};
    c.size = sizeof c;
    c.kind = abi::kBufferMemoryCopy;
    c.operation = kind;
    c.correlation = {++launches, external(abi::kRequestMemoryCopy)};
    c.start = start;
    c.end = end;
    const std::uint64_t host = 999;
    c.source.handle = kind == abi::CopyKind::kHostToDevice ? host : 1000;
    c.destination.handle = kind == abi::CopyKind::kDeviceToHost ? host : 1000;
    c.bytes = bytes;
    const std::scoped_lock lock(mutex);
    copies.push_back(c);
  }

  void marker(std::int32_t operation, const char* message, std::uint64_t range = 0) {
    namespace abi = abi::rocprofiler;
    abi::MarkerCall data{};
    data.size = sizeof data;
    if (operation == abi::kRangeStop) {
      data.arguments.range = range;
    } else if (operation != abi::kRangePop) {
      data.arguments.message = message;
    }
    call(abi::kCallbackMarker, operation, abi::kPhaseEnter, &data);
    data.returned = range;
    call(abi::kCallbackMarker, operation, abi::kPhaseExit, &data);
  }

  // On a thread of the library, as a flush does.
  void deliver() {
    std::thread([this] {
      std::vector<Dispatch> d;
      std::vector<Copy> c;
      {
        const std::scoped_lock lock(mutex);
        d.swap(dispatches);
        c.swap(copies);
      }
      if (on_buffer == nullptr || d.empty() + c.empty() == 2) return;
      std::vector<abi::rocprofiler::RecordHeader> headers;
      for (const auto& record : d) headers.push_back({1, 11, &record});
      for (const auto& record : c) headers.push_back({1, 10, &record});
      std::vector<abi::rocprofiler::RecordHeader*> list;
      for (auto& header : headers) list.push_back(&header);
      on_buffer({7}, {9}, list.data(), list.size(), buffer_data, dropped);
      std::memset(static_cast<void*>(d.data()), 0xEE, d.size() * sizeof(Dispatch));
    }).join();
  }

  // --- What the library exports ---

  abi::rocprofiler::Status may(const char* service) const {
    if (!configuring) return kLocked;
    return refused.contains(service) ? kError : abi::rocprofiler::kSuccess;
  }

  static abi::rocprofiler::Status create_context(abi::rocprofiler::Context* context) {
    context->handle = 7;
    return now()->may("context");
  }
  static abi::rocprofiler::Status start_context(abi::rocprofiler::Context) {
    now()->started = !now()->refused.contains("start");
    return now()->started ? 0 : kError;
  }
  static abi::rocprofiler::Status stop_context(abi::rocprofiler::Context) {
    now()->started = false;
    return 0;
  }
  static abi::rocprofiler::Status create_buffer(abi::rocprofiler::Context, std::size_t, std::size_t,
                                                int policy,
                                                abi::rocprofiler::BufferCallback* callback,
                                                void* data, abi::rocprofiler::Buffer* buffer) {
    if (policy != abi::rocprofiler::kPolicyLossless) return kError;
    now()->on_buffer = callback;
    now()->buffer_data = data;
    buffer->handle = 9;
    return now()->may("buffer");
  }
  static abi::rocprofiler::Status flush_buffer(abi::rocprofiler::Buffer buffer) {
    if (buffer.handle != 9) return kError;
    if (now()->finalized) return kFinalized;
    now()->deliver();
    return 0;
  }
  static abi::rocprofiler::Status buffer_tracing(abi::rocprofiler::Context, int kind,
                                                 const std::int32_t*, std::size_t,
                                                 abi::rocprofiler::Buffer) {
    now()->traced.insert(kind);
    return now()->may(kind == abi::rocprofiler::kBufferMemoryCopy ? "copies" : "kernels");
  }
  static abi::rocprofiler::Status callback_tracing(abi::rocprofiler::Context, int kind,
                                                   const std::int32_t*, std::size_t,
                                                   void (*callback)(), void* data) {
    const auto status = now()->may(kind == abi::rocprofiler::kCallbackMarker ? "markers" : "names");
    if (status == 0) now()->callbacks[kind] = {callback, data};
    return status;
  }
  static abi::rocprofiler::Status correlation(abi::rocprofiler::Context, const int*, std::size_t,
                                              abi::rocprofiler::CorrelationRequest* callback,
                                              void* data) {
    const auto status = now()->may("correlation");
    if (status == 0) {
      now()->request = callback;
      now()->request_data = data;
    }
    return status;
  }
  static abi::rocprofiler::Status agents(int version, abi::rocprofiler::AgentsCallback* callback,
                                         std::size_t size, void* data) {
    if (version != abi::rocprofiler::kAgentVersion || size > sizeof(Agent)) return kError;
    if (now()->refused.contains("agents")) return kError;
    std::vector<Agent> all(now()->gpus.size() + 1);
    std::vector<const void*> list;
    for (std::size_t i = 0; i != all.size(); ++i) {
      Agent& agent = all[i];
      agent.size = sizeof agent;
      const bool is_cpu = i == 0;
      agent.id.handle = is_cpu ? 999 : 999 + i;
      agent.type = is_cpu ? abi::rocprofiler::AgentType::kCpu : abi::rocprofiler::AgentType::kGpu;
      if (!is_cpu) std::tie(agent.domain, agent.location) = now()->gpus[i - 1];
      agent.name = is_cpu ? "EPYC" : "gfx942";
      agent.product_name = is_cpu ? "AMD EPYC" : "AMD Instinct MI300X";
      list.push_back(&agent);
    }
    return callback(version, list.data(), list.size(), data);
  }
  static abi::rocprofiler::Status timestamp(std::uint64_t* out) {
    *out = stamp();
    return 0;
  }
  static const char* status_text(abi::rocprofiler::Status status) {
    return status == kLocked ? "configuration is locked" : "generalized error";
  }
};

}  // namespace jouleprof::rocm
