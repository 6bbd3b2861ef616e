// The scope of each launch.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace jouleprof::cupti {

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
