// A CUPTI for tests, with fabricated records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "spans/cupti/cupti_api.h"

namespace jouleprof::cupti {

// Plain functions, so one of them at a time. What a real CUPTI keeps hidden is open here.
struct FakeCupti {
  abi::cupti::BufferRequested* requested = nullptr;
  abi::cupti::BufferCompleted* completed = nullptr;
  abi::cupti::Callback* callback = nullptr;
  void* user = nullptr;
  std::set<abi::cupti::ActivityKind> enabled;
  std::mutex enabled_mutex;  // several threads change and read what is enabled
  std::set<std::pair<abi::cupti::Domain, std::uint32_t>> calls;
  std::map<abi::cupti::GraphNode, std::uint64_t> node_ids;
  abi::cupti::Result subscribe_result = abi::cupti::Result::kSuccess;
  abi::cupti::Result enable_result = abi::cupti::Result::kSuccess;
  std::set<abi::cupti::ActivityKind> refused;  // of these it enables none
  std::size_t dropped = 0;
  int forced_flushes = 0;
  bool taken_away = false;  // another client gets the buffers
  std::mutex mutex;
  std::vector<std::vector<std::uint8_t>> waiting;  // records, each padded to 8 bytes

  static FakeCupti*& now() {
    static FakeCupti* fake = nullptr;
    return fake;
  }
  bool records(abi::cupti::ActivityKind kind) {
    const std::scoped_lock lock(enabled_mutex);
    return enabled.contains(kind);
  }

  FakeCupti() { now() = this; }
  ~FakeCupti() { now() = nullptr; }

  // A record of any version: our fields in `prefix`, then others.
  template <typename Record>
  void record(const Record& prefix, std::size_t size) {
    std::vector<std::uint8_t> bytes(size, 0xEE);
    std::memcpy(bytes.data(), &prefix, sizeof prefix);
    const std::scoped_lock lock(mutex);
    waiting.push_back(std::move(bytes));
  }

  void deliver() {
    const std::scoped_lock lock(mutex);
    if (waiting.empty() || taken_away) return;
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0;
    std::size_t most = 0;
    requested(&buffer, &size, &most);
    if (size == 0) {
      dropped += waiting.size();
      waiting.clear();
      return;
    }
    std::size_t valid = 0;
    for (const auto& bytes : waiting) {
      std::memcpy(buffer + valid, bytes.data(), bytes.size());
      valid += bytes.size();
    }
    waiting.clear();
    completed(nullptr, 0, buffer, size, valid);
  }

  void call(abi::cupti::DriverCall call, abi::cupti::Site site, std::uint32_t correlation = 0,
            const void* parameters = nullptr) {
    abi::cupti::CallbackData data{};
    data.site = site;
    data.function_parameters = parameters;
    data.correlation_id = correlation;
    callback(user, abi::cupti::Domain::kDriverApi, static_cast<std::uint32_t>(call), &data);
  }
  void unload(abi::cupti::ModuleData code) {
    const abi::cupti::ResourceData data{nullptr, nullptr, &code};
    callback(user, abi::cupti::Domain::kResource,
             static_cast<std::uint32_t>(abi::cupti::ResourceCall::kModuleUnloadStarting), &data);
  }
  void launch(abi::cupti::DriverCall made, std::uint32_t correlation) {
    call(made, abi::cupti::Site::kEnter, correlation);
    call(made, abi::cupti::Site::kExit, correlation);
  }

  void graph_node(abi::cupti::ResourceCall call, std::uint64_t id, std::uint64_t original = 0) {
    const auto handle = [&](std::uint64_t n) {
      auto* node = reinterpret_cast<abi::cupti::GraphNode>(0x1000 + n * 16);
      node_ids[node] = n;
      return node;
    };
    abi::cupti::GraphData graph{};
    graph.node = handle(id);
    if (original != 0) graph.original_node = handle(original);
    abi::cupti::ResourceData data{};
    data.descriptor = &graph;
    callback(user, abi::cupti::Domain::kResource, static_cast<std::uint32_t>(call), &data);
  }

  static std::size_t size_of(abi::cupti::ActivityKind kind) {
    switch (kind) {
      case abi::cupti::ActivityKind::kGraphTrace:
        return 56;
      case abi::cupti::ActivityKind::kMemset:
        return 88;
      case abi::cupti::ActivityKind::kDevice:
        return 184;
      case abi::cupti::ActivityKind::kConcurrentKernel:
        return 208;
      default:
        return 96;
    }
  }

  static CuptiApi api() {
    using abi::cupti::Result;
    CuptiApi api;
    api.path = "fake";
    api.get_version = [](std::uint32_t* version) {
      *version = 130000;
      return Result::kSuccess;
    };
    api.result_string = [](Result, const char** text) {
      *text = "CUPTI_ERROR_FAKE";
      return Result::kSuccess;
    };
    api.enable = [](abi::cupti::ActivityKind kind) {
      if (now()->enable_result != Result::kSuccess) return now()->enable_result;
      if (now()->refused.contains(kind)) return Result::kInvalidParameter;
      const std::scoped_lock lock(now()->enabled_mutex);
      now()->enabled.insert(kind);
      return Result::kSuccess;
    };
    api.disable = [](abi::cupti::ActivityKind kind) {
      const std::scoped_lock lock(now()->enabled_mutex);
      now()->enabled.erase(kind);
      return Result::kSuccess;
    };
    api.register_callbacks = [](abi::cupti::BufferRequested* r, abi::cupti::BufferCompleted* c) {
      now()->requested = r;
      now()->completed = c;
      return Result::kSuccess;
    };
    api.next_record = [](std::uint8_t* buffer, std::size_t valid, abi::cupti::Activity** record) {
      auto* next = reinterpret_cast<std::uint8_t*>(*record);
      next = next == nullptr ? buffer : next + size_of((*record)->kind);
      if (next >= buffer + valid) return Result::kMaxLimitReached;
      *record = reinterpret_cast<abi::cupti::Activity*>(next);
      return Result::kSuccess;
    };
    api.dropped_records = [](abi::cupti::Context, std::uint32_t, std::size_t* count) {
      const std::scoped_lock lock(now()->mutex);
      *count = std::exchange(now()->dropped, 0);
      return Result::kSuccess;
    };
    api.flush_all = [](std::uint32_t flag) {
      now()->forced_flushes += flag == abi::cupti::kFlushForced;
      now()->deliver();
      return Result::kSuccess;
    };
    api.subscribe = [](abi::cupti::Subscriber* subscriber, abi::cupti::Callback* called,
                       void* data) {
      if (now()->subscribe_result != Result::kSuccess) return now()->subscribe_result;
      *subscriber = reinterpret_cast<abi::cupti::Subscriber>(now());
      now()->callback = called;
      now()->user = data;
      return Result::kSuccess;
    };
    api.unsubscribe = [](abi::cupti::Subscriber) { return Result::kSuccess; };
    api.enable_callback = [](std::uint32_t, abi::cupti::Subscriber, abi::cupti::Domain domain,
                             std::uint32_t call) {
      now()->calls.insert({domain, call});
      return Result::kSuccess;
    };
    api.graph_node_id = [](abi::cupti::GraphNode node, std::uint64_t* id) {
      const auto found = now()->node_ids.find(node);
      if (found == now()->node_ids.end()) return Result::kInvalidParameter;
      *id = found->second;
      return Result::kSuccess;
    };
    return api;
  }
};

}  // namespace jouleprof::cupti
