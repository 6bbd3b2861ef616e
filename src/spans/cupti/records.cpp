#include "spans/cupti/records.h"

#include <algorithm>
#include <cmath>

#include "spans/cupti/aggregate/activity_aggregator.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::cupti {
namespace {

namespace abi = abi::cupti;

// Clocks of device and host agree to microseconds; a stamp this far in the future is none.
constexpr std::int64_t kFuture = 1'000'000'000;
constexpr std::int64_t kLongest = std::int64_t{24} * 3600 * 1'000'000'000;

KernelClasses::Shape shape(const std::int32_t (&n)[3]) {
  return {static_cast<std::uint32_t>(n[0]), static_cast<std::uint32_t>(n[1]),
          static_cast<std::uint32_t>(n[2])};
}

}  // namespace

BufferPool::BufferPool(std::size_t most) : most_(most) {
  all_.reserve(most);
  free_.reserve(most);
  full_.reserve(most);
}

BufferPool::~BufferPool() {
  for (std::uint8_t* buffer : all_) munmap(buffer, kBytes);
}

std::uint8_t* BufferPool::take() noexcept {
  const std::scoped_lock lock(mutex_);
  if (!free_.empty()) {
    std::uint8_t* buffer = free_.back();
    free_.pop_back();
    ++outside_;
    return buffer;
  }
  // The system provides pages on first use, not the program's own allocator.
  void* memory = all_.size() < most_ ? mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                     : MAP_FAILED;
  if (memory == MAP_FAILED) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  ++outside_;
  all_.push_back(static_cast<std::uint8_t*>(memory));
  return all_.back();
}

void BufferPool::full(std::uint8_t* buffer, std::size_t valid) noexcept {
  const std::scoped_lock lock(mutex_);
  // Another client of CUPTI may have handed out buffers before us.
  if (std::ranges::find(all_, buffer) == all_.end()) return;
  completed_.fetch_add(1, std::memory_order_relaxed);
  --outside_;
  if (valid == 0) {
    free_.push_back(buffer);
  } else {
    full_.push_back({buffer, valid});
  }
}

FullBuffer BufferPool::next() noexcept {
  const std::scoped_lock lock(mutex_);
  if (full_.empty()) return {};
  const FullBuffer first = full_.front();
  full_.erase(full_.begin());
  return first;
}

void BufferPool::put_back(std::uint8_t* buffer) noexcept {
  const std::scoped_lock lock(mutex_);
  free_.push_back(buffer);
}

std::size_t BufferPool::outside() noexcept {
  const std::scoped_lock lock(mutex_);
  return outside_;
}

void RecordReader::read(const FullBuffer& buffer, const StampConverter& stamps, HostTime now) {
  stamps_ = &stamps;
  latest_ = now.time_since_epoch().count() + kFuture;
  abi::Activity* record = nullptr;
  while (api_.next_record(buffer.data, buffer.valid, &record) == abi::Result::kSuccess &&
         record != nullptr) {
    take(*record);
  }
}

void RecordReader::take(const abi::Activity& record) {
  // The kind says which record stands there.
  switch (record.kind) {
    case abi::ActivityKind::kKernel:
    case abi::ActivityKind::kConcurrentKernel: {
      const auto& kernel = reinterpret_cast<const abi::ActivityKernel&>(record);
      take_single(kernel, classes_.kernel(kernel.name, shape(kernel.grid), shape(kernel.block)));
      break;
    }
    case abi::ActivityKind::kMemcpy: {
      const auto& copy = reinterpret_cast<const abi::ActivityMemcpy&>(record);
      take_single(copy, classes_.copy(copy.copy_kind, copy.bytes));
      break;
    }
    case abi::ActivityKind::kMemcpy2: {
      const auto& copy = reinterpret_cast<const abi::ActivityMemcpyPeer&>(record);
      take_single(copy, classes_.copy(10, copy.bytes));
      break;
    }
    case abi::ActivityKind::kMemset: {
      const auto& set = reinterpret_cast<const abi::ActivityMemset&>(record);
      take_single(set, classes_.set(set.bytes));
      break;
    }
    case abi::ActivityKind::kGraphTrace:
      take_graph(reinterpret_cast<const abi::ActivityGraphTrace&>(record));
      break;
    case abi::ActivityKind::kDevice:
      take_device(reinterpret_cast<const abi::ActivityDevice&>(record));
      break;
    default:
      break;
  }
}

template <typename Record>
bool RecordReader::place(const Record& record, Activity& activity) {
  if (record.start == 0 || record.end < record.start) {
    ++without_times_;
    return false;
  }
  activity.start = stamps_->host(record.start);
  activity.end = activity.start + static_cast<std::int64_t>(record.end - record.start);
  if (activity.end > latest_ || activity.end - activity.start > kLongest) {
    ++without_times_;
    return false;
  }
  activity.device = record.device_id;
  activity.stream = record.stream_id;
  activity.graph = record.graph_id;
  activity.correlation = record.correlation_id;
  return true;
}

template <typename Record>
void RecordReader::take_single(const Record& record, std::uint32_t kernel_class) {
  Activity activity;
  if (!place(record, activity)) return;
  activity.kernel_class = kernel_class;
  activity.collective = record.graph_node_id == 0 && classes_.is_collective(kernel_class);
  const bool found = launches_.find(record.correlation_id, activity.scope);
  if (record.graph_node_id != 0) {
    activity.scope = scopes::merged(nodes_.scope(record.graph_node_id), activity.scope);
  } else {
    activity.graph = 0;
    activity.copy = record.kind != abi::ActivityKind::kKernel &&
                    record.kind != abi::ActivityKind::kConcurrentKernel;
    ++(found ? matched_ : unmatched_);
  }
  aggregator_.add(activity);
}

void RecordReader::take_graph(const abi::ActivityGraphTrace& record) {
  Activity activity;
  if (!place(record, activity)) return;
  activity.whole_graph = true;
  activity.kernel_class = classes_.graph(record.graph_id);
  if (record.device_id == abi::kHostDevice) activity.device = model::kNone;
  launches_.find(record.correlation_id, activity.scope);
  aggregator_.add(activity);
}

void RecordReader::take_device(const abi::ActivityDevice& record) {
  model::TracedDevice device;
  device.ordinal = record.id;
  if (record.mig_enabled != 0) device.uuid = uuid_text("MIG-", record.mig_uuid);
  if (device.uuid.empty()) device.uuid = uuid_text("GPU-", record.uuid);
  if (record.name != nullptr) device.name = record.name;
  aggregator_.device(device);
}

void StampConverter::point(const ClockPoint& now) {
  const std::int64_t host = now.host.time_since_epoch().count();
  const std::int64_t real = now.real.time_since_epoch().count();
  drift_ = 0;
  step_ = 0;
  if (any_ && host > host_) {
    const std::int64_t gone = host - host_;
    const std::int64_t off = gone - (real - real_);  // of the wall clock, while that time went
    // Slewing changes the rate by 500 ppm at most; anything more is a step.
    if (std::abs(off) <= 1000 + gone / 1000) {
      drift_ = static_cast<double>(off) / static_cast<double>(real - real_ + 1);
    } else {
      step_ = -off;
    }
  }
  host_ = host;
  real_ = real;
  any_ = true;
}

}  // namespace jouleprof::cupti
