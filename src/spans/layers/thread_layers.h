// Calls of layers in one thread, and the time in them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "model/activity/activity.h"
#include "spans/layers/autograd.h"

namespace jouleprof::layers {

// Calls of a layer in one phase, and the time in its own code. CPU time is of calls from outside of
// all layers, and the whole process's while they ran.
struct LayerTime {
  std::uint64_t calls = 0;
  std::uint64_t wall_nanoseconds = 0;
  std::uint64_t cpu_nanoseconds = 0;  // 0: not taken
};

// One thread writes, one thread at a time reads; neither waits for the other.
class LayerTimes {
 public:
  static constexpr std::uint32_t kMaxLayers = 1 << 18;  // of later ones no time is taken

  class Cell {
   public:
    void call() noexcept { raise(calls_, 1); }
    void spend(Duration time) noexcept {
      raise(wall_nanoseconds_, static_cast<std::uint64_t>(time.count()));
    }
    void spend_cpu(Duration time) noexcept {
      raise(cpu_nanoseconds_, static_cast<std::uint64_t>(time.count()));
    }
    LayerTime read() const noexcept {
      return {calls_.load(std::memory_order_relaxed),
              wall_nanoseconds_.load(std::memory_order_relaxed),
              cpu_nanoseconds_.load(std::memory_order_relaxed)};
    }

   private:
    // Only one thread writes, so no locked instruction is needed.
    static void raise(std::atomic<std::uint64_t>& value, std::uint64_t by) noexcept {
      value.store(value.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    }
    std::atomic<std::uint64_t> calls_{0};
    std::atomic<std::uint64_t> wall_nanoseconds_{0};
    std::atomic<std::uint64_t> cpu_nanoseconds_{0};
  };

  // The cell of a phase outside of layers; there is none of Phase::kNone.
  Cell& phase_cell(model::Phase phase) noexcept {
    return phases_[static_cast<std::size_t>(phase) - 1];
  }

  // nullptr: too many layers, no memory, or a phase that layers have no calls in.
  Cell* cell(std::uint32_t layer, model::Phase phase) noexcept {
    if (layer >= kMaxLayers) return nullptr;
    Page* page = pages_[layer / kPageLayers].load(std::memory_order_relaxed);
    if (page == nullptr && (page = add_page(layer / kPageLayers)) == nullptr) return nullptr;
    return &page->cells[2 * (layer % kPageLayers) + (phase == model::Phase::kBackward ? 1 : 0)];
  }

  // What was added since the last call: take(layer, phase, LayerTime), the layer being model::kNone
  // for the time outside of layers.
  template <typename Take>
  void drain(Take&& take) {
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      drain_cell(phases_[i], reported_phases_[i], model::kNone, static_cast<model::Phase>(i + 1),
                 take);
    }
    for (std::uint32_t p = 0; p < kPages; ++p) {
      Page* page = pages_[p].load(std::memory_order_acquire);
      if (page == nullptr) continue;
      for (std::uint32_t i = 0; i < page->cells.size(); ++i) {
        drain_cell(page->cells[i], page->reported[i], p * kPageLayers + i / 2,
                   i % 2 != 0 ? model::Phase::kBackward : model::Phase::kForward, take);
      }
    }
  }

  LayerTimes() = default;
  ~LayerTimes();
  LayerTimes(const LayerTimes&) = delete;
  LayerTimes& operator=(const LayerTimes&) = delete;

 private:
  static constexpr std::uint32_t kPageLayers = 512;
  static constexpr std::uint32_t kPages = kMaxLayers / kPageLayers;

  struct Page {
    std::array<Cell, 2 * kPageLayers> cells;          // of each layer: forward, backward
    std::array<LayerTime, 2 * kPageLayers> reported;  // the reader's
  };

  template <typename Take>
  static void drain_cell(const Cell& cell, LayerTime& reported, std::uint32_t layer,
                         model::Phase phase, Take&& take) {
    const LayerTime now = cell.read();
    const LayerTime more{now.calls - reported.calls,
                         now.wall_nanoseconds - reported.wall_nanoseconds,
                         now.cpu_nanoseconds - reported.cpu_nanoseconds};
    if (more.calls == 0 && more.wall_nanoseconds == 0) return;
    reported = now;
    take(layer, phase, more);
  }

  Page* add_page(std::uint32_t index) noexcept;

  std::array<std::atomic<Page*>, kPages> pages_{};
  std::array<Cell, 3> phases_{};  // from Phase::kForward on
  std::array<LayerTime, 3> reported_phases_{};
};

// The layer that made each node of the autograd graph, by sequence numbers, which count up in each
// thread.
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

// The layer that a thread is in: for launch callbacks (spans/scopes), for the backward pass
// (SequenceRing), and for the time spent there (LayerTimes).
// Only the owning thread calls these functions, but drain().
class ThreadLayers {
 public:
  // The state of the thread before a layer was entered.
  struct Outer {
    std::uint32_t layer = model::kNone;
    model::Phase phase = model::Phase::kNone;
    LayerTimes::Cell* cell = nullptr;
  };

  // The calling thread's; nullptr: there are too many threads, or no memory.
  static ThreadLayers* mine() noexcept;

  // A call of `layer` begins; leave() restores `outer`, also after an exception.
  void enter(std::uint32_t layer, Outer& outer) noexcept;
  void leave(const Outer& outer) noexcept;

  // A backward pass or an optimizer's step begins and ends. Where CPU time is taken, its time
  // counts without that of layers and phases within it; one within a layer does not count. An end
  // without its begin is ignored, and so is a begin without its end.
  void begin_phase(model::Phase phase) noexcept;
  void end_phase(model::Phase phase) noexcept;

  std::uint32_t layer() const noexcept { return scope_->layer; }
  bool outermost() const noexcept { return depth_ == 0; }

  // Outside of layers: the optimizer's steps.
  void set_phase(model::Phase phase) noexcept { scope_->phase = phase; }

  LayerTimes& times() noexcept { return times_; }

 private:
  friend class ThreadLayersList;

  void mark_sequence() noexcept;

  model::Scope* scope_ = nullptr;
  LayerTimes::Cell* cell_ = nullptr;
  HostTime last_{};
  std::uint32_t depth_ = 0;
  struct Spent {
    Duration wall{};
    Duration cpu{};  // of the process
  };
  struct OpenPhase {
    HostTime begin{};
    Duration cpu_begin{};
    Spent before;  // spent_ when it began
    bool open = false;
  };
  OpenPhase& open_phase(model::Phase phase) noexcept {
    return phases_[phase == model::Phase::kBackward ? 0 : 1];
  }

  HostTime outermost_begin_{};
  Duration cpu_begin_{};  // of the process, when the outermost call began; 0: not taken
  Spent spent_;           // in outermost calls and phases so far, where CPU time is taken
  std::array<OpenPhase, 2> phases_{};
  std::uint64_t sequence_ = 0;  // nodes below it are accounted for
  const Autograd* autograd_ = nullptr;
  SequenceRing* ring_ = nullptr;
  bool no_ring_ = false;
  LayerTimes times_;
  std::atomic<bool> ended_{false};
};

// From now on nodes of the graph have layers, and the finder of spans/scopes returns the scope of
// threads that run a backward pass. Kept for the life of the process.
void use_autograd(const Autograd& autograd);

// That finder: layer and phase of the node whose backward pass the calling thread runs.
bool find_backward(model::Scope& scope) noexcept;

}  // namespace jouleprof::layers
