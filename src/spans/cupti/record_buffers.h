// Buffers that the driver fills with records.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

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

}  // namespace jouleprof::cupti
