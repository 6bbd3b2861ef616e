// CUPTI's records: the buffers that the driver fills with them, and what becomes of them.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

#include "base/clock.h"
#include "spans/cupti/aggregate/activity_aggregator.h"
#include "spans/cupti/cupti_api.h"
#include "spans/cupti/record_modes.h"

namespace jouleprof::cupti {

struct FullBuffer {
  std::uint8_t* data = nullptr;
  std::size_t valid = 0;  // bytes
};

// At most `most` buffers of 4 MB; one that was read is used again. Thread safety: all functions
// from any thread, under one lock that is held for a few instructions.
class BufferPool {
 public:
  static constexpr std::size_t kBytes = std::size_t{4} << 20;

  explicit BufferPool(std::size_t most = 24);  // 96 MB
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // nullptr when all are in use.
  std::uint8_t* take() noexcept;
  // Ignores a buffer that is not from this pool.
  void full(std::uint8_t* buffer, std::size_t valid) noexcept;
  // A full buffer, the oldest first; data is nullptr when there is none. To be put back.
  FullBuffer next() noexcept;
  void put_back(std::uint8_t* buffer) noexcept;

  std::size_t outside() noexcept;  // taken, and not full yet
  std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }
  std::uint64_t completed() const noexcept { return completed_.load(std::memory_order_relaxed); }

 private:
  const std::size_t most_;
  std::mutex mutex_;  // guards what follows; all vectors have room for all buffers
  std::vector<std::uint8_t*> all_;
  std::vector<std::uint8_t*> free_;
  std::vector<FullBuffer> full_;
  std::size_t outside_ = 0;
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> completed_{0};
};

// The scope of each launch.
// Keeps about the last 2^20 launches: a launch replaces the one 2^20 before it.
// Thread safety: all functions from any thread, without locks.
class CorrelationTable {
 public:
  static constexpr std::size_t kPlaces = std::size_t{1} << 20;

  CorrelationTable() noexcept {
    void* memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) places_ = static_cast<std::atomic<std::uint64_t>*>(memory);
  }
  ~CorrelationTable() {
    if (places_ != nullptr) munmap(places_, kBytes);
  }
  CorrelationTable(const CorrelationTable&) = delete;
  CorrelationTable& operator=(const CorrelationTable&) = delete;

  void put(std::uint32_t correlation, std::uint32_t scope) noexcept {
    if (places_ == nullptr) return;
    places_[correlation % kPlaces].store(std::uint64_t{correlation} << 32 | scope,
                                         std::memory_order_relaxed);
  }

  // False where the launch is unknown or was replaced. CUDA counts launches from 1.
  bool find(std::uint32_t correlation, std::uint32_t& scope) const noexcept {
    if (places_ == nullptr || correlation == 0) return false;
    const std::uint64_t place = places_[correlation % kPlaces].load(std::memory_order_relaxed);
    if (place >> 32 != correlation) return false;
    scope = static_cast<std::uint32_t>(place);
    return true;
  }

 private:
  static constexpr std::size_t kBytes = kPlaces * sizeof(std::atomic<std::uint64_t>);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  std::atomic<std::uint64_t>* places_ = nullptr;  // zero pages until used
};

// Converts CUPTI's timestamps to host time.
// Assumes a constant rate of the wall clock between the last two clock points, unless it was set in
// between.
class StampConverter {
 public:
  StampConverter() { point(ClockPoint::now()); }
  explicit StampConverter(const ClockPoint& first) { point(first); }

  void point(const ClockPoint& now);

  // Nanoseconds of CLOCK_REALTIME to nanoseconds of HostTime.
  std::int64_t host(std::uint64_t stamp) const {
    const auto real = static_cast<std::int64_t>(stamp);
    const std::int64_t since = real - real_;
    const bool before = step_ > 0 ? since < -step_ / 2 : step_ < 0 && since > 0;
    return host_ + since + static_cast<std::int64_t>(static_cast<double>(since) * drift_) +
           (before ? step_ : 0);
  }

 private:
  bool any_ = false;
  std::int64_t host_ = 0;  // the last point
  std::int64_t real_ = 0;
  double drift_ = 0;       // of host time against the wall clock
  std::int64_t step_ = 0;  // of the wall clock, forward, since the point before
};

// Reads CUPTI's buffers.
// Thread safety: one thread.
class RecordReader {
 public:
  RecordReader(const CuptiApi& api, const CorrelationTable& launches, const GraphNodes& nodes,
               KernelClasses& classes, ActivityAggregator& aggregator)
      : api_(api), launches_(launches), nodes_(nodes), classes_(classes), aggregator_(aggregator) {}

  // Passes the records of the buffer to the aggregator. `now`: no record ends later.
  void read(const FullBuffer& buffer, const StampConverter& stamps, HostTime now);

  // Records with missing or impossible times.
  std::uint64_t without_times() const { return without_times_; }
  // Launches outside of graphs whose scope was found, and those without a callback.
  std::uint64_t matched() const { return matched_; }
  std::uint64_t unmatched() const { return unmatched_; }

 private:
  void take(const abi::cupti::Activity& record);
  template <typename Record>
  bool place(const Record& record, Activity& activity);
  template <typename Record>
  void take_single(const Record& record, std::uint32_t kernel_class);
  void take_graph(const abi::cupti::ActivityGraphTrace& record);
  void take_device(const abi::cupti::ActivityDevice& record);

  const CuptiApi& api_;
  const CorrelationTable& launches_;
  const GraphNodes& nodes_;
  KernelClasses& classes_;
  ActivityAggregator& aggregator_;
  const StampConverter* stamps_ = nullptr;
  std::int64_t latest_ = 0;
  std::uint64_t without_times_ = 0;
  std::uint64_t matched_ = 0;
  std::uint64_t unmatched_ = 0;
};

}  // namespace jouleprof::cupti
