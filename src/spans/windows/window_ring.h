// A queue of windows from the one thread that ends them to the one that collects them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "spans/windows/window_record.h"

namespace jouleprof::spans {

// Thread safety: one thread pushes, one at a time drains; neither waits for the other.
class WindowRing {
 public:
  static constexpr std::size_t kCapacity = 4096;

  // False when it is full: nothing was pushed.
  bool push(const WindowRecord& record) noexcept {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head - seen_tail_ == kCapacity) {
      seen_tail_ = tail_.load(std::memory_order_acquire);
      if (head - seen_tail_ == kCapacity) return false;
    }
    records_[head % kCapacity] = record;
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // How many were pushed in all, and the record with that number, of the last kCapacity.
  std::size_t pushed() const { return head_.load(std::memory_order_acquire); }
  const WindowRecord& at(std::size_t number) const { return records_[number % kCapacity]; }

  // Gives all records to `take`, one at a time, oldest first. One that `take` throws at stays, and
  // all after it.
  template <typename Take>
  void drain(Take&& take) {
    const std::size_t head = head_.load(std::memory_order_acquire);
    std::size_t tail = tail_.load(std::memory_order_relaxed);
    while (tail != head) {
      take(records_[tail % kCapacity]);
      tail_.store(++tail, std::memory_order_release);
    }
  }

 private:
  alignas(64) std::atomic<std::size_t> head_{0};
  std::size_t seen_tail_ = 0;  // the pushing thread's
  alignas(64) std::atomic<std::size_t> tail_{0};
  std::array<WindowRecord, kCapacity> records_;
};

}  // namespace jouleprof::spans
