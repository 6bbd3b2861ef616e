#include "spans/cupti/memset_records.h"

#include <chrono>
#include <cstdint>

namespace jouleprof::cupti {
namespace {

namespace abi = abi::cupti;

constexpr Duration kShortestLook = std::chrono::milliseconds{500};

constexpr std::uint64_t kUnknown = UINT64_MAX;  // recorded, like a large one

std::uint64_t flat(const void* parameters, std::uint64_t element) {
  if (parameters == nullptr) return kUnknown;
  return static_cast<const abi::MemsetParameters*>(parameters)->count * element;
}

std::uint64_t rows(const void* parameters, std::uint64_t element) {
  if (parameters == nullptr) return kUnknown;
  const auto& set = *static_cast<const abi::MemsetRowsParameters*>(parameters);
  return set.width * set.height * element;
}

}  // namespace

std::optional<std::uint64_t> memset_bytes(abi::DriverCall call, const void* parameters) {
  using enum abi::DriverCall;
  switch (call) {
    case kMemsetD8:
    case kMemsetD8Ptds:
    case kMemsetD8Async:
    case kMemsetD8AsyncPtsz:
      return flat(parameters, 1);
    case kMemsetD16:
    case kMemsetD16Ptds:
    case kMemsetD16Async:
    case kMemsetD16AsyncPtsz:
      return flat(parameters, 2);
    case kMemsetD32:
    case kMemsetD32Ptds:
    case kMemsetD32Async:
    case kMemsetD32AsyncPtsz:
      return flat(parameters, 4);
    case kMemsetD2D8:
    case kMemsetD2D8Ptds:
    case kMemsetD2D8Async:
    case kMemsetD2D8AsyncPtsz:
      return rows(parameters, 1);
    case kMemsetD2D16:
    case kMemsetD2D16Ptds:
    case kMemsetD2D16Async:
    case kMemsetD2D16AsyncPtsz:
      return rows(parameters, 2);
    case kMemsetD2D32:
    case kMemsetD2D32Ptds:
    case kMemsetD2D32Async:
    case kMemsetD2D32AsyncPtsz:
      return rows(parameters, 4);
    default:
      return std::nullopt;
  }
}

void MemsetRecords::leave_out_small() {
  if (api_.disable(abi::ActivityKind::kMemset) == abi::Result::kSuccess) leaves_out_.store(true);
}

void MemsetRecords::record_all() noexcept {
  // Without the mutex, because CUPTI may hold a lock of its own during a callback.
  if (leaves_out_.load() && leaves_out_.exchange(false)) api_.enable(abi::ActivityKind::kMemset);
}

void MemsetRecords::on_call(abi::Site site, std::uint64_t bytes) noexcept {
  // Callbacks may have begun within a call, and the way of recording may change within one.
  static constinit thread_local bool within_large = false;
  if (site == abi::Site::kEnter) {
    if (!leaves_out_.load(std::memory_order_relaxed)) return;
    if (bytes < kLeastBytes) {
      left_out_.fetch_add(1, std::memory_order_relaxed);
    } else {
      within_large = true;
      begin_large();
    }
  } else if (within_large) {
    within_large = false;
    end_large();
  }
}

void MemsetRecords::begin_large() noexcept {
  const std::scoped_lock lock(large_mutex_);
  if (large_++ == 0) api_.enable(abi::ActivityKind::kMemset);
}

void MemsetRecords::end_large() noexcept {
  const std::scoped_lock lock(large_mutex_);
  if (--large_ != 0 || !leaves_out_.load()) return;
  api_.disable(abi::ActivityKind::kMemset);
  if (!leaves_out_.load()) api_.enable(abi::ActivityKind::kMemset);  // record_all() meanwhile
}

void MemsetRecords::look(HostTime now) {
  if (looked_ && now - *looked_ < kShortestLook) return;
  const std::uint64_t count = left_out();
  if (looked_) {
    const double rate = static_cast<double>(count - left_out_before_) / seconds(now - *looked_);
    if (rate > static_cast<double>(kMostLeftOut)) record_all();
  }
  looked_ = now;
  left_out_before_ = count;
}

}  // namespace jouleprof::cupti
