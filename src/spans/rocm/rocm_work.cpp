#include "spans/rocm/rocm_work.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/process/dynlib.h"
#include "base/process/threads.h"
#include "model/device/sensor_table.h"
#include "spans/cupti/cupti_api.h"
#include "spans/scopes/range_stack.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::rocm {
namespace {

namespace abi = abi::rocprofiler;
using std::chrono::seconds;

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;
constexpr std::size_t kWatermark = kBufferBytes / 4;
constexpr std::int64_t kLongest = std::int64_t{24} * 3600 * 1'000'000'000;
constexpr Duration kFuture = seconds{1};
// A scope in an external correlation; other values are not ours.
constexpr std::uint64_t kScope = std::uint64_t{1} << 32;
constexpr std::size_t kLongestName = 512;
constexpr std::size_t kMostRanges = 100'000;

std::string version_text(std::uint32_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

// "kernel.kd" is the descriptor of "kernel".
std::string kernel_name(const char* symbol) {
  std::string_view name = symbol != nullptr ? symbol : "";
  if (name.ends_with(".kd")) name.remove_suffix(3);
  return std::string(name);
}

std::string_view view(const char* text) {
  if (text == nullptr) return {};
  return {text, ::strnlen(text, kLongestName)};
}

// Work groups, of which CUDA's grids are made, from work items.
cupti::KernelClasses::Shape groups(const abi::Size3& items, const abi::Size3& group) {
  const auto of = [](std::uint32_t n, std::uint32_t size) {
    return size == 0 ? n : static_cast<std::uint32_t>((std::uint64_t{n} + size - 1) / size);
  };
  return {of(items.x, group.x), of(items.y, group.y), of(items.z, group.z)};
}

int give_scope(std::uint64_t, abi::Context, int, std::int32_t, std::uint64_t,
               std::uint64_t* external, void*) noexcept {
  const std::uint32_t scope = scopes::current();
  if (external == nullptr || scope == model::kNone) return 1;
  *external = kScope | scope;
  return 0;
}

std::uint32_t scope_of(std::uint64_t external) {
  return external >> 32 == 1 ? static_cast<std::uint32_t>(external) : model::kNone;
}

// Where it lies in the same place of the graphics processor's package or on the host.
unsigned copy_kind(abi::CopyKind kind) {
  switch (kind) {
    case abi::CopyKind::kHostToDevice:
      return 1;
    case abi::CopyKind::kDeviceToHost:
      return 2;
    case abi::CopyKind::kDeviceToDevice:
      return 8;
    case abi::CopyKind::kHostToHost:
      break;
  }
  return 9;
}

}  // namespace

Result<RocprofilerApi> RocprofilerApi::loaded(std::uint32_t version) {
  if (version < abi::kOldestVersion || version >= abi::kVersion2) {
    return fail(Errc::kUnsupported,
                fmt::format("kernels of AMD GPUs are not traced: rocprofiler-sdk {} has other "
                            "records than versions 0.6 to 1.x (ROCm 6.4 and 7); install one of "
                            "those",
                            version_text(version)));
  }
  RocprofilerApi api;
  api.version = version;
  // The loader may have kept its symbols local.
  DynLib named;
  for (const std::string& path : cupti::loaded_libraries()) {
    const bool is_it =
        std::string_view(path).substr(path.rfind('/') + 1).starts_with("librocprofiler-sdk.so");
    if (is_it) named = DynLib::loaded(path);
  }
  std::string missing;
  const auto bind = [&]<typename F>(F*& function, const char* name, bool is_needed = true) {
    void* found = ::dlsym(RTLD_DEFAULT, name);
    if (found == nullptr && named) found = named.symbol(name);
    function = reinterpret_cast<F*>(found);
    if (function == nullptr && is_needed && missing.empty()) missing = name;
  };
  bind(api.create_context, "rocprofiler_create_context");
  bind(api.start_context, "rocprofiler_start_context");
  bind(api.stop_context, "rocprofiler_stop_context");
  bind(api.create_buffer, "rocprofiler_create_buffer");
  bind(api.flush_buffer, "rocprofiler_flush_buffer");
  bind(api.buffer_tracing, "rocprofiler_configure_buffer_tracing_service");
  bind(api.callback_tracing, "rocprofiler_configure_callback_tracing_service");
  bind(api.agents, "rocprofiler_query_available_agents");
  bind(api.timestamp, "rocprofiler_get_timestamp");
  bind(api.correlation, "rocprofiler_configure_external_correlation_id_request_service", false);
  bind(api.status_text, "rocprofiler_get_status_string", false);
  if (!missing.empty()) {
    return fail(Errc::kUnsupported,
                fmt::format("kernels of AMD GPUs are not traced: rocprofiler-sdk {} has no {}",
                            version_text(version), missing));
  }
  return api;
}

std::string bus_address(const abi::Agent& agent) {
  // Bits 28 and above number the partitions of a board.
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", agent.domain & 0xffffU,
                     agent.location >> 8 & 0xff, agent.location >> 3 & 0x1f, agent.location & 7);
}

std::string board_uuid(const std::filesystem::path& root, const std::string& bus_address) {
  const auto id = read_attribute(root / "sys/bus/pci/devices" / bus_address / "unique_id");
  return id ? model::amd_uuid(*id) : std::string();
}

Result<std::unique_ptr<cupti::WorkSource>> RocmWork::start(const RocprofilerApi& api,
                                                           RocmOptions options,
                                                           model::ActivitySink& sink,
                                                           std::function<void()> wake) {
  // Not destroyed where it fails, either: the library may hold on to what was configured.
  static NeverDestroyed<std::vector<RocmWork*>> all;
  all->reserve(all->size() + 1);
  auto* const work = new RocmWork(api, std::move(options), sink, std::move(wake));
  all->push_back(work);
  if (auto configured = work->configure(); !configured) return forward_error(configured);
  return std::unique_ptr<cupti::WorkSource>(work);
}

RocmWork::RocmWork(const RocprofilerApi& api, RocmOptions options, model::ActivitySink& sink,
                   std::function<void()> wake)
    : api_(api),
      options_(std::move(options)),
      wake_(std::move(wake)),
      classes_(sink),
      aggregator_(sink, {.events = options_.events}),
      first_(HostClock::now()) {}

std::string RocmWork::words(abi::Status status) const {
  const char* text = api_.status_text != nullptr ? api_.status_text(status) : nullptr;
  return text != nullptr ? std::string(text) : fmt::format("status {}", status);
}

void RocmWork::add_problem(const std::string& problem) {
  problem_ += (problem_.empty() ? "" : "; ") + problem;
}

template <typename CallbackRecord>
void RocmWork::on_callback(CallbackRecord record, std::uint64_t*, void* data) noexcept {
  auto& work = *static_cast<RocmWork*>(data);
  if (record.payload == nullptr) return;
  if (record.kind == abi::kCallbackMarker) {
    work.on_marker(record.operation, record.phase,
                   *static_cast<const abi::MarkerCall*>(record.payload));
  } else if (record.kind == abi::kCallbackCodeObject && record.operation == abi::kKernelSymbol &&
             record.phase == abi::kPhaseEnter) {
    work.define_kernel(*static_cast<const abi::KernelSymbol*>(record.payload));
  }
}

Result<void> RocmWork::configure() {
  const auto failed = [&](std::string_view what, abi::Status status) {
    return fail(Errc::kUnavailable,
                fmt::format("kernels of AMD GPUs are not traced: {}: {}", what, words(status)));
  };
  take_clock();
  find_devices();
  if (auto s = api_.create_context(&context_); s != abi::kSuccess) {
    return failed("rocprofiler-sdk makes no context", s);
  }
  const auto on_buffer = [](abi::Context, abi::Buffer, abi::RecordHeader** headers,
                            std::size_t count, void* data, std::uint64_t dropped) {
    static_cast<RocmWork*>(data)->hand_over(headers, count, dropped);
  };
  // Its other policy has no place for the records that come while it hands some over.
  if (auto s = api_.create_buffer(context_, kBufferBytes, kWatermark, abi::kPolicyLossless,
                                  on_buffer, this, &buffer_);
      s != abi::kSuccess) {
    return failed("rocprofiler-sdk makes no buffer", s);
  }
  const auto callback = api_.version >= abi::kVersion1
                            ? reinterpret_cast<void (*)()>(&on_callback<abi::CallbackRecord>)
                            : reinterpret_cast<void (*)()>(&on_callback<abi::CallbackRecord0>);
  if (auto s =
          api_.callback_tracing(context_, abi::kCallbackCodeObject, nullptr, 0, callback, this);
      s != abi::kSuccess) {
    return failed("rocprofiler-sdk does not say the names of kernels", s);
  }
  if (auto s = api_.buffer_tracing(context_, abi::kBufferKernelDispatch, nullptr, 0, buffer_);
      s != abi::kSuccess) {
    return failed("rocprofiler-sdk records no kernels", s);
  }
  if (auto s = api_.buffer_tracing(context_, abi::kBufferMemoryCopy, nullptr, 0, buffer_);
      s != abi::kSuccess) {
    add_problem(fmt::format("copies of memory are not recorded: {}", words(s)));
  }
  constexpr std::int32_t kMarkers[] = {abi::kRangePush, abi::kRangePop, abi::kRangeStart,
                                       abi::kRangeStop};
  if (auto s = api_.callback_tracing(context_, abi::kCallbackMarker, kMarkers, std::size(kMarkers),
                                     callback, this);
      s != abi::kSuccess) {
    add_problem(fmt::format("ROCTX ranges are not recorded: {}", words(s)));
  }
  constexpr int kRequests[] = {abi::kRequestMemoryCopy, abi::kRequestKernelDispatch};
  if (api_.correlation == nullptr) {
    add_problem("launches have no layers and ranges: rocprofiler-sdk has no service for that");
  } else if (auto s = api_.correlation(context_, kRequests, std::size(kRequests), give_scope, this);
             s != abi::kSuccess) {
    add_problem(fmt::format("launches have no layers and ranges: {}", words(s)));
  }
  if (auto s = api_.start_context(context_); s != abi::kSuccess) {
    return failed("rocprofiler-sdk does not start", s);
  }
  return {};
}

// Partitions of a board are one device: it has one sensor.
void RocmWork::find_devices() {
  const auto list = [](int, const void** agents, std::size_t count, void* data) -> abi::Status {
    auto& work = *static_cast<RocmWork*>(data);
    std::map<std::string, std::uint32_t> boards;
    for (std::size_t i = 0; i != count; ++i) {
      const auto& agent = *static_cast<const abi::Agent*>(agents[i]);
      if (agent.type != abi::AgentType::kGpu) continue;
      const std::string address = bus_address(agent);
      const auto [board, is_new] =
          boards.emplace(address, static_cast<std::uint32_t>(boards.size()));
      work.ordinals_[agent.id.handle] = board->second;
      if (!is_new) continue;
      model::TracedDevice device;
      device.ordinal = board->second;
      device.uuid = board_uuid(work.options_.root, address);
      device.name = view(agent.product_name);
      if (device.name.empty()) device.name = view(agent.name);
      work.aggregator_.device(device);
    }
    return abi::kSuccess;
  };
  const auto s = api_.agents(abi::kAgentVersion, list, sizeof(abi::Agent), this);
  if (s != abi::kSuccess) {
    add_problem(fmt::format("rocprofiler-sdk does not list the GPUs: {}", words(s)));
  }
}

void RocmWork::take_clock() {
  constexpr Duration kQuick = std::chrono::microseconds{20};
  ClockPoint best{};
  Duration shortest = Duration::max();
  for (int i = 0; i != 5 && shortest > kQuick; ++i) {
    std::uint64_t stamp = 0;
    const HostTime before = HostClock::now();
    if (api_.timestamp(&stamp) != abi::kSuccess) return;
    const Duration took = HostClock::now() - before;
    if (took >= shortest) continue;
    shortest = took;
    best.host = before + took / 2;
    best.real = RealTime{Duration{static_cast<std::int64_t>(stamp)}};
  }
  if (stamps_ == nullptr) {
    stamps_ = std::make_unique<cupti::StampConverter>(best);
  } else {
    stamps_->point(best);
  }
}

void RocmWork::define_kernel(const abi::KernelSymbol& symbol) noexcept {
  try {
    std::string name = kernel_name(symbol.name);
    const std::scoped_lock lock(mutex_);
    names_.emplace(symbol.kernel, std::move(name));
  } catch (...) {  // no memory: the kernel has no name
  }
}

void RocmWork::on_marker(std::int32_t operation, int phase, const abi::MarkerCall& call) noexcept {
  static const char domain = 0;
  try {
    if (operation == abi::kRangePush && phase == abi::kPhaseEnter) {
      scopes::push_range(&domain, view(call.arguments.message));
    } else if (operation == abi::kRangePop && phase == abi::kPhaseExit) {
      scopes::pop_range(&domain);
    } else if (operation == abi::kRangeStart && phase == abi::kPhaseExit) {
      const auto ours = scopes::start_range(view(call.arguments.message));
      const std::scoped_lock lock(mutex_);
      if (ours != 0 && ranges_.size() < kMostRanges) ranges_[call.returned] = ours;
    } else if (operation == abi::kRangeStop && phase == abi::kPhaseEnter) {
      std::uint64_t ours = 0;
      {
        const std::scoped_lock lock(mutex_);
        if (const auto found = ranges_.find(call.arguments.range); found != ranges_.end()) {
          ours = found->second;
          ranges_.erase(found);
        }
      }
      if (ours != 0) scopes::end_range(ours);
    }
  } catch (...) {  // no memory: the range is not recorded
  }
}

// On a thread of the library, whose buffer it is.
void RocmWork::hand_over(abi::RecordHeader** headers, std::size_t count,
                         std::uint64_t dropped) noexcept {
  constexpr std::size_t kCopyEnd = offsetof(abi::MemoryCopy, bytes) + sizeof(std::uint64_t);
  constexpr std::size_t kInfoEnd = offsetof(abi::DispatchInfo, grid) + sizeof(abi::Size3);
  constexpr std::size_t kDispatchEnd = offsetof(abi::KernelDispatch, info) + kInfoEnd;
  bool is_much = false;
  std::size_t i = 0;
  try {
    const std::scoped_lock lock(mutex_);
    library_lost_ += dropped >= library_count_ ? dropped - library_count_ : dropped;
    library_count_ = dropped;
    for (; i != count; ++i) {
      const abi::RecordHeader* header = headers[i];
      if (header == nullptr || header->payload == nullptr ||
          header->category != abi::kCategoryTracing) {
        continue;
      }
      Record record;
      if (header->kind == abi::kBufferKernelDispatch) {
        const auto& from = *static_cast<const abi::KernelDispatch*>(header->payload);
        if (from.size < kDispatchEnd || from.info.size < kInfoEnd) {
          ++lost_;
          continue;
        }
        record.start = static_cast<std::int64_t>(from.start);
        record.end = static_cast<std::int64_t>(from.end);
        record.agent = from.info.agent.handle;
        record.queue = from.info.queue;
        record.kernel = from.info.kernel;
        record.grid = from.info.grid;
        record.workgroup = from.info.workgroup;
        record.scope = scope_of(from.correlation.external);
        record.correlation = static_cast<std::uint32_t>(from.correlation.internal);
      } else if (header->kind == abi::kBufferMemoryCopy) {
        const auto& from = *static_cast<const abi::MemoryCopy*>(header->payload);
        if (from.size < kCopyEnd) {
          ++lost_;
          continue;
        }
        if (from.operation == abi::CopyKind::kHostToHost) continue;  // no work of a GPU
        const bool is_upload = from.operation == abi::CopyKind::kHostToDevice;
        record.start = static_cast<std::int64_t>(from.start);
        record.end = static_cast<std::int64_t>(from.end);
        record.agent = is_upload ? from.destination.handle : from.source.handle;
        record.queue = ~std::uint64_t{0};  // engines of their own
        record.bytes = from.bytes;
        record.scope = scope_of(from.correlation.external);
        record.correlation = static_cast<std::uint32_t>(from.correlation.internal);
        record.copy_kind = copy_kind(from.operation);
      } else {
        continue;
      }
      if (waiting_.size() < options_.most_waiting) {
        waiting_.push_back(record);
      } else {
        ++lost_;
      }
    }
    is_much = waiting_.size() > options_.most_waiting / 2;
  } catch (...) {  // no memory: they are lost
    const std::scoped_lock lock(mutex_);
    lost_ += count - i;
  }
  if (is_much) wake_();
}

void RocmWork::take(const Record& record) {
  cupti::Activity activity;
  activity.start = stamps_->host(static_cast<std::uint64_t>(record.start));
  activity.end = activity.start + (record.end - record.start);
  const std::int64_t latest = (HostClock::now() + kFuture).time_since_epoch().count();
  // Before the tool began there were no records: such a stamp is of another clock.
  const std::int64_t earliest = (first_ - kFuture).time_since_epoch().count();
  if (record.start == 0 || record.end < record.start || record.end - record.start > kLongest ||
      activity.end > latest || activity.start < earliest) {
    ++without_times_;
    return;
  }
  const auto device = ordinals_.find(record.agent);
  activity.device = device != ordinals_.end() ? device->second : model::kNone;
  activity.stream = static_cast<std::uint32_t>(record.queue ^ record.queue >> 32);
  activity.scope = record.scope;
  activity.correlation = record.correlation;
  if (record.copy_kind != 0) {
    activity.kernel_class = classes_.copy(record.copy_kind, record.bytes);
  } else {
    const char* name = "unknown kernel";
    {
      const std::scoped_lock lock(mutex_);
      if (const auto known = names_.find(record.kernel); known != names_.end()) {
        name = known->second.c_str();  // stays where it is
      }
    }
    const abi::Size3& group = record.workgroup;
    activity.kernel_class =
        classes_.kernel(name, groups(record.grid, group), {group.x, group.y, group.z});
    activity.collective = classes_.is_collective(activity.kernel_class);
  }
  aggregator_.add(activity);
}

void RocmWork::drain() {
  taken_.clear();
  {
    const std::scoped_lock lock(mutex_);
    taken_.swap(waiting_);
  }
  for (const Record& record : taken_) take(record);
}

void RocmWork::collect(bool all) {
  {
    const std::scoped_lock lock(library_mutex_);
    if (!closed_) {
      api_.flush_buffer(buffer_);
      take_clock();
    }
  }
  drain();
  std::uint64_t dropped = 0;
  {
    const std::scoped_lock lock(mutex_);
    dropped = lost_ + library_lost_;
  }
  aggregator_.settle(all, dropped > dropped_);
  dropped_ = dropped;
}

void RocmWork::add_to(model::TraceStatus& status) const {
  status.activities += aggregator_.activities();
  status.dropped += dropped_ + without_times_ + aggregator_.unplaced();
  status.late += aggregator_.late();
  if (status.problem.empty()) status.problem = problem_;
}

void RocmWork::close() {
  const std::scoped_lock lock(library_mutex_);
  if (std::exchange(closed_, true)) return;
  api_.stop_context(context_);
  api_.flush_buffer(buffer_);
}

}  // namespace jouleprof::rocm
