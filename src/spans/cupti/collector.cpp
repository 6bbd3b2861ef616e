#include "spans/cupti/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "spans/cupti/cupti_api.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::cupti {
namespace {

namespace abi = abi::cupti;
using abi::ActivityKind;
using abi::DriverCall;
using abi::ResourceCall;
using abi::RuntimeCall;

std::atomic<Collector*> in_use{nullptr};
std::atomic<const Collector::Listener*> listening{nullptr};

constexpr ActivityKind kKinds[] = {ActivityKind::kDevice, ActivityKind::kConcurrentKernel,
                                   ActivityKind::kMemcpy, ActivityKind::kMemcpy2,
                                   ActivityKind::kMemset};
constexpr DriverCall kGraphLaunches[] = {DriverCall::kGraphLaunch, DriverCall::kGraphLaunchPtsz};
constexpr DriverCall kInstantiations[] = {
    DriverCall::kGraphInstantiate,
    DriverCall::kGraphInstantiate2,
    DriverCall::kGraphInstantiateWithFlags,
    DriverCall::kGraphInstantiateWithParams,
    DriverCall::kGraphInstantiateWithParamsPtsz,
};
constexpr DriverCall kDriverCalls[] = {
    DriverCall::kLaunchKernel,
    DriverCall::kLaunchKernelPtsz,
    DriverCall::kLaunchCooperativeKernel,
    DriverCall::kLaunchCooperativeKernelPtsz,
    DriverCall::kLaunchKernelEx,
    DriverCall::kLaunchKernelExPtsz,
    DriverCall::kGraphLaunch,
    DriverCall::kGraphLaunchPtsz,
    DriverCall::kMemcpyHtoD,
    DriverCall::kMemcpyHtoDAsync,
    DriverCall::kMemcpyDtoH,
    DriverCall::kMemcpyDtoHAsync,
    DriverCall::kMemcpyDtoD,
    DriverCall::kMemcpyDtoDAsync,
    DriverCall::kMemcpyAsync,
    DriverCall::kMemcpyHtoDAsyncPtsz,
    DriverCall::kMemcpyDtoHAsyncPtsz,
    DriverCall::kMemcpyDtoDAsyncPtsz,
    DriverCall::kMemcpyAsyncPtsz,
    DriverCall::kMemsetD8,
    DriverCall::kMemsetD16,
    DriverCall::kMemsetD32,
    DriverCall::kMemsetD2D8,
    DriverCall::kMemsetD2D16,
    DriverCall::kMemsetD2D32,
    DriverCall::kMemsetD8Ptds,
    DriverCall::kMemsetD16Ptds,
    DriverCall::kMemsetD32Ptds,
    DriverCall::kMemsetD2D8Ptds,
    DriverCall::kMemsetD2D16Ptds,
    DriverCall::kMemsetD2D32Ptds,
    DriverCall::kMemsetD8Async,
    DriverCall::kMemsetD16Async,
    DriverCall::kMemsetD32Async,
    DriverCall::kMemsetD2D8Async,
    DriverCall::kMemsetD2D16Async,
    DriverCall::kMemsetD2D32Async,
    DriverCall::kMemsetD8AsyncPtsz,
    DriverCall::kMemsetD16AsyncPtsz,
    DriverCall::kMemsetD32AsyncPtsz,
    DriverCall::kMemsetD2D8AsyncPtsz,
    DriverCall::kMemsetD2D16AsyncPtsz,
    DriverCall::kMemsetD2D32AsyncPtsz,
};
// What makes launches of a graph differ: changes of executable graphs, and nodes that run others as
// often as kernels decide.
constexpr DriverCall kGraphUpdates[] = {
    DriverCall::kGraphConditionalHandleCreate,
    DriverCall::kGraphExecKernelNodeSetParams,
    DriverCall::kGraphExecKernelNodeSetParams2,
    DriverCall::kGraphExecUpdate,
    DriverCall::kGraphExecUpdate2,
    DriverCall::kGraphExecMemcpyNodeSetParams,
    DriverCall::kGraphExecMemsetNodeSetParams,
    DriverCall::kGraphExecChildGraphNodeSetParams,
    DriverCall::kGraphExecNodeSetParams,
};
// No work of the GPU's, and of interest to a listener only.
constexpr DriverCall kListenedCalls[] = {
    DriverCall::kGraphAddKernelNode2,
    DriverCall::kGraphKernelNodeSetParams2,
    DriverCall::kGraphKernelNodeSetAttribute,
    DriverCall::kGraphKernelNodeCopyAttributes,
    DriverCall::kGraphAddMemsetNode,
    DriverCall::kGraphAddNode,
    DriverCall::kGraphAddNode2,
    DriverCall::kModuleUnload,
    DriverCall::kLibraryUnload,
    DriverCall::kMemFree2,
    DriverCall::kMemFreeAsync,
    DriverCall::kMemFreeAsyncPtsz,
    DriverCall::kMemUnmap,
};
constexpr RuntimeCall kRuntimeCalls[] = {
    RuntimeCall::kLaunchKernel,
    RuntimeCall::kLaunchKernelPtsz,
    RuntimeCall::kLaunchCooperativeKernel,
    RuntimeCall::kLaunchCooperativeKernelPtsz,
    RuntimeCall::kLaunchKernelExC,
    RuntimeCall::kLaunchKernelExCPtsz,
    RuntimeCall::kGraphLaunch,
    RuntimeCall::kGraphLaunchPtsz,
    RuntimeCall::kLaunchKernel13,
    RuntimeCall::kLaunchKernel13Ptsz,
    RuntimeCall::kMemcpyAsync,
    RuntimeCall::kMemcpyAsyncPtsz,
    RuntimeCall::kMemsetAsync,
    RuntimeCall::kMemsetAsyncPtsz,
};
constexpr ResourceCall kResourceCalls[] = {
    ResourceCall::kGraphNodeCreated, ResourceCall::kGraphNodeCloned,
    ResourceCall::kGraphNodeDestroyStarting, ResourceCall::kGraphExecCreateStarting,
    ResourceCall::kGraphExecDestroyStarting};

template <std::size_t N>
bool is_one_of(const DriverCall (&calls)[N], abi::Domain domain, std::uint32_t call) {
  return domain == abi::Domain::kDriverApi &&
         std::ranges::find(calls, static_cast<DriverCall>(call)) != std::end(calls);
}

}  // namespace

Collector::Collector(CuptiApi api, std::size_t most_buffers, std::function<void()> wake)
    : api_(std::move(api)), buffers_(most_buffers), wake_(std::move(wake)) {}

std::string Collector::words(abi::Result result) const {
  const char* text = nullptr;
  if (api_.result_string(result, &text) != abi::Result::kSuccess || text == nullptr) {
    return fmt::format("CUPTI error {}", static_cast<unsigned>(result));
  }
  return text;
}

Result<void> Collector::start(bool whole_graphs, bool every_memset) {
  in_use.store(this);
  if (auto enabled = enable(); !enabled) {
    in_use.store(nullptr);
    return enabled;
  }
  subscribe();
  // Only callbacks can switch between nodes and whole graphs; without them, nodes are recorded. Nor
  // can small memsets be left out without them.
  if (whole_graphs && subscribed()) {
    graphs_.start();
    if (api_.copies && !every_memset) memsets_.leave_out_small();
  }
  return {};
}

Result<void> Collector::enable() {
  const auto registered = api_.register_callbacks(&buffer_requested, &buffer_completed);
  if (registered != abi::Result::kSuccess) {
    return fail(Errc::kUnavailable,
                fmt::format("no kernels are traced: {} does not hand over its records ({})",
                            api_.path, words(registered)));
  }
  if (!api_.copies) {
    add_problem(
        "copies and memory sets are not traced, because CUPTI fails programs of XLA with them. "
        "Their energy counts as idle between launches; with XLA_FLAGS="
        "--xla_gpu_enable_command_buffer= they are traced");
  }
  for (const ActivityKind kind : kKinds) {
    const bool is_copy = kind != ActivityKind::kDevice && kind != ActivityKind::kConcurrentKernel;
    if (is_copy && !api_.copies) continue;
    const auto result = api_.enable(kind);
    if (result == abi::Result::kSuccess) continue;
    if (kind != ActivityKind::kConcurrentKernel) {
      note_missing(kind, result);
      continue;
    }
    if (result == abi::Result::kInsufficientPrivileges ||
        result == abi::Result::kVirtualizedDeviceInsufficientPrivileges) {
      return fail(Errc::kPermissionDenied,
                  fmt::format("no kernels are traced: the driver lets only root profile ({}); the "
                              "administrator can allow it with the module option "
                              "NVreg_RestrictProfilingToAdminUsers=0",
                              words(result)));
    }
    return fail(Errc::kUnavailable,
                fmt::format("no kernels are traced: CUPTI refuses ({}). If {} uses CUPTI in this "
                            "process, let it write its trace and run `jouleprof annotate` on that",
                            words(result), likely_profiler(loaded_libraries())));
  }
  return {};
}

void Collector::note_missing(ActivityKind kind, abi::Result result) {
  const char* records = kind == ActivityKind::kMemcpy    ? "copies are"
                        : kind == ActivityKind::kMemcpy2 ? "copies between GPUs are"
                        : kind == ActivityKind::kMemset  ? "memory sets are"
                                                         : nullptr;
  if (records == nullptr) return;  // devices: the driver names them, too (driver_device)
  add_problem(
      fmt::format("{} not traced: CUPTI refuses their records ({}). Their energy counts as "
                  "idle between launches; use the CUPTI of the driver's CUDA version",
                  records, words(result)));
}

void Collector::add_problem(const std::string& problem) {
  if (!problem_.empty()) problem_ += "; ";
  problem_ += problem;
}

void Collector::subscribe() {
  const auto result = api_.subscribe(&subscriber_, &callback, this);
  if (result == abi::Result::kMultipleSubscribersNotSupported) {
    subscriber_ = nullptr;
    add_problem(fmt::format(
        "kernels are not related to layers and ranges: {} takes CUPTI's callbacks in this process. "
        "Run without it, or run `jouleprof annotate` on the trace that it writes",
        likely_profiler(loaded_libraries())));
    return;
  }
  if (result != abi::Result::kSuccess) {
    subscriber_ = nullptr;
    add_problem(
        fmt::format("kernels are not related to layers and ranges: CUPTI refuses callbacks ({}). "
                    "Run `jouleprof "
                    "doctor` for what is needed",
                    words(result)));
    return;
  }
  // Enabling a call that this driver does not have fails without harm.
  const auto enable = [this](const auto& calls) {
    for (const DriverCall call : calls) {
      api_.enable_callback(1, subscriber_, abi::Domain::kDriverApi,
                           static_cast<std::uint32_t>(call));
    }
  };
  enable(kDriverCalls);
  enable(kInstantiations);
  enable(kGraphUpdates);
  if (listening.load() != nullptr) {
    enable(kListenedCalls);
    api_.enable_callback(1, subscriber_, abi::Domain::kResource,
                         static_cast<std::uint32_t>(ResourceCall::kModuleUnloadStarting));
  }
  for (const ResourceCall call : kResourceCalls) {
    api_.enable_callback(1, subscriber_, abi::Domain::kResource, static_cast<std::uint32_t>(call));
  }
}

void Collector::watch_runtime_calls() {
  if (subscriber_ == nullptr) return;
  for (const RuntimeCall call : kRuntimeCalls) {
    api_.enable_callback(1, subscriber_, abi::Domain::kRuntimeApi,
                         static_cast<std::uint32_t>(call));
  }
}

void Collector::stop() {
  if (subscriber_ != nullptr) api_.unsubscribe(subscriber_);
  subscriber_ = nullptr;
  for (const ActivityKind kind : kKinds) api_.disable(kind);
  graphs_.stop();
  Collector* self = this;
  in_use.compare_exchange_strong(self, nullptr);
}

void Collector::listen(const Listener* listener) noexcept { listening.store(listener); }

void Collector::forget() noexcept { in_use.store(nullptr); }

std::uint64_t Collector::take_dropped() {
  std::size_t dropped = 0;
  if (api_.dropped_records(nullptr, 0, &dropped) != abi::Result::kSuccess) return 0;
  return dropped;
}

std::vector<UnrecordedLaunch> Collector::take_unrecorded() {
  const std::scoped_lock lock(unrecorded_mutex_);
  return std::exchange(unrecorded_, {});
}

void Collector::buffer_requested(std::uint8_t** buffer, std::size_t* size,
                                 std::size_t* most_records) {
  Collector* self = in_use.load();
  *buffer = self != nullptr ? self->buffers_.take() : nullptr;
  *size = *buffer != nullptr ? BufferPool::kBytes : 0;
  *most_records = 0;
}

void Collector::buffer_completed(abi::Context, std::uint32_t, std::uint8_t* buffer, std::size_t,
                                 std::size_t valid) {
  Collector* self = in_use.load();
  if (self == nullptr) return;
  self->buffers_.full(buffer, valid);
  if (valid != 0) self->wake_();
}

void Collector::callback(void* user, abi::Domain domain, std::uint32_t call, const void* data) {
  auto* self = static_cast<Collector*>(user);
  if (data == nullptr || in_use.load(std::memory_order_relaxed) != self) return;
  if (domain == abi::Domain::kResource) {
    const auto& resource = *static_cast<const abi::ResourceData*>(data);
    if (static_cast<ResourceCall>(call) == ResourceCall::kModuleUnloadStarting) {
      const Listener* listener = listening.load(std::memory_order_relaxed);
      if (listener == nullptr || resource.descriptor == nullptr) return;
      listener->on_unload(*static_cast<const abi::ModuleData*>(resource.descriptor));
    } else if (resource.descriptor != nullptr) {
      self->on_graph_node(call, *static_cast<const abi::GraphData*>(resource.descriptor));
    }
  } else {
    self->on_launch(domain, call, *static_cast<const abi::CallbackData*>(data));
  }
}

void Collector::on_launch(abi::Domain domain, std::uint32_t call,
                          const abi::CallbackData& data) noexcept {
  if (is_one_of(kInstantiations, domain, call)) {
    memsets_.record_all();
    graphs_.on_instantiation(data.site);
    return;
  }
  if (domain == abi::Domain::kDriverApi) {
    const Listener* listener = listening.load(std::memory_order_relaxed);
    if (listener != nullptr) listener->on_call(static_cast<DriverCall>(call), data);
    if (is_one_of(kGraphUpdates, domain, call)) {
      if (data.site == abi::Site::kEnter) graphs_.on_update();
      return;
    }
    if (listener != nullptr && is_one_of(kListenedCalls, domain, call)) return;
    on_driver_call(static_cast<DriverCall>(call), data);
  }
  if (data.site != abi::Site::kEnter) return;
  launches_.put(data.correlation_id, scopes::current());
  last_launch_.store(data.correlation_id, std::memory_order_relaxed);
}

void Collector::on_driver_call(DriverCall call, const abi::CallbackData& data) noexcept {
  if (std::ranges::find(kGraphLaunches, call) != std::end(kGraphLaunches)) {
    on_graph_launch(data);
  } else if (const auto bytes = memset_bytes(call, data.function_parameters)) {
    memsets_.on_call(data.site, *bytes);
  }
}

void Collector::on_graph_launch(const abi::CallbackData& data) noexcept {
  if (data.site == abi::Site::kEnter) graph_launches_.fetch_add(1, std::memory_order_relaxed);
  const auto* parameters = static_cast<const abi::GraphLaunchParameters*>(data.function_parameters);
  const auto graph = parameters != nullptr ? parameters->graph : nullptr;
  if (!graphs_.on_launch(data.site, graph)) return;
  UnrecordedLaunch launch{HostClock::now().time_since_epoch().count(), scopes::current(), 0,
                          data.correlation_id};
  if (api_.graph_exec_id(graph, &launch.graph) != abi::Result::kSuccess) return;
  try {
    const std::scoped_lock lock(unrecorded_mutex_);
    unrecorded_.push_back(launch);
  } catch (...) {  // no memory: the launch is lost
  }
}

void Collector::on_graph_node(std::uint32_t call, const abi::GraphData& data) noexcept {
  memsets_.record_all();
  if (static_cast<ResourceCall>(call) == ResourceCall::kGraphExecCreateStarting) {
    graphs_.on_creation();
    return;
  }
  if (static_cast<ResourceCall>(call) == ResourceCall::kGraphExecDestroyStarting) {
    graphs_.on_destruction(data.graph_exec);
    return;
  }
  std::uint64_t node = 0;
  if (api_.graph_node_id(data.node, &node) != abi::Result::kSuccess) return;
  switch (static_cast<ResourceCall>(call)) {
    case ResourceCall::kGraphNodeCreated:
      nodes_.created(node, scopes::current());
      break;
    case ResourceCall::kGraphNodeCloned:
      if (std::uint64_t original = 0;
          api_.graph_node_id(data.original_node, &original) == abi::Result::kSuccess) {
        nodes_.cloned(node, original);
      }
      break;
    case ResourceCall::kGraphNodeDestroyStarting:
      nodes_.destroyed(node);
      break;
    default:
      break;
  }
}

}  // namespace jouleprof::cupti
