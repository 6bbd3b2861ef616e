// Which memsets CUPTI records: small ones are left out while they are few.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "spans/cupti/cupti_api.h"

namespace jouleprof::cupti {

// Recording a memset takes the GPU 1.3 to 1.8 us (two H100s, CUPTI 13.0), longer than one of a few
// bytes itself, and cuBLAS makes such a memset before many matrix products: 0.9 % of DeiT-B at
// batch 64 (docs/costs.md). Records are therefore enabled only during the calls that set
// kLeastBytes or more. All are recorded
//
// - from the first CUDA graph on, whose nodes are recorded as they were when it was made;
// - once kMostLeftOut a second were left out: they would take more than 5 % of the time.
//
// Thread safety: on_call() and record_all() from any thread; the others from one.
class MemsetRecords {
 public:
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20;
  static constexpr std::uint64_t kMostLeftOut = 50'000;

  explicit MemsetRecords(const CuptiApi& api) : api_(api) {}

  // From now on small ones are left out, where their records were enabled before.
  void leave_out_small();
  // From now on none is. It may be called from any callback of CUPTI.
  void record_all() noexcept;

  // CUPTI's callbacks of the driver's calls that memset_bytes() knows.
  void on_call(abi::cupti::Site site, std::uint64_t bytes) noexcept;
  // To be called about once a second.
  void look(HostTime now);

  // Memsets, at most: one during a large one of another thread may have been recorded.
  std::uint64_t left_out() const { return left_out_.load(std::memory_order_relaxed); }

 private:
  void begin_large() noexcept;
  void end_large() noexcept;

  const CuptiApi& api_;
  std::atomic<bool> leaves_out_{false};
  std::atomic<std::uint64_t> left_out_{0};
  std::mutex large_mutex_;
  int large_ = 0;  // calls under way

  std::optional<HostTime> looked_;
  std::uint64_t left_out_before_ = 0;
};

// The bytes that a call of the driver sets; absent for other calls.
std::optional<std::uint64_t> memset_bytes(abi::cupti::DriverCall call, const void* parameters);

}  // namespace jouleprof::cupti
