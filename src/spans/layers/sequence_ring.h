// The layer that made each node of the autograd graph, by sequence numbers, which count up in each
// thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "model/activity/activity.h"

namespace jouleprof::layers {

// The newest kCapacity intervals of sequence numbers of one thread. That thread pushes, any thread
// looks up, none waits.
class SequenceRing {
 public:
  static constexpr std::size_t kCapacity = 1 << 15;

  // The numbers [first, end) were assigned in `layer` (kNone: in no layer). `first` is the last
  // push's end, or above it.
  void push(std::uint64_t first, std::uint64_t end, std::uint32_t layer) noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    // A reader that sees any of a place's new content also sees that it was reserved.
    reserved_.store(head + 1, std::memory_order_relaxed);
    Entry& entry = entries_[head % kCapacity];
    entry.first.store(first, std::memory_order_release);
    entry.made.store((end - first) << 32 | layer, std::memory_order_release);
    head_.store(head + 1, std::memory_order_release);
  }

  // The layer that made a node; kNone: none did. Empty: not known, or not any more.
  std::optional<std::uint32_t> find(std::uint64_t sequence) const noexcept {
    const std::uint64_t head = head_.load(std::memory_order_acquire);
    const std::uint64_t oldest = head > kCapacity ? head - kCapacity : 0;
    std::uint64_t low = oldest;
    std::uint64_t high = head;  // the last entry whose first is not above `sequence` is before it
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (at(middle).first.load(std::memory_order_relaxed) <= sequence) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == oldest) return std::nullopt;
    const Entry& entry = at(low - 1);
    const std::uint64_t first = entry.first.load(std::memory_order_acquire);
    const std::uint64_t made = entry.made.load(std::memory_order_acquire);
    // Overwritten while it was read?
    if (reserved_.load(std::memory_order_relaxed) > low - 1 + kCapacity) return std::nullopt;
    if (sequence < first || sequence - first >= made >> 32) return std::nullopt;
    return static_cast<std::uint32_t>(made);
  }

  // The forward thread's number (of PyTorch); 0: the ring is free.
  std::atomic<std::uint64_t> thread{0};
  // Its thread has ended: free for another, once no other ring is.
  std::atomic<bool> ended{false};

  // For another thread. Only while no thread pushes.
  void clear() noexcept {
    head_.store(0, std::memory_order_release);
    reserved_.store(0, std::memory_order_release);
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> first;
    std::atomic<std::uint64_t> made;  // how many from there on; by which layer: lower half
  };

  const Entry& at(std::uint64_t i) const noexcept { return entries_[i % kCapacity]; }

  std::atomic<std::uint64_t> head_{0};
  std::atomic<std::uint64_t> reserved_{0};
  std::array<Entry, kCapacity> entries_;
};

}  // namespace jouleprof::layers
