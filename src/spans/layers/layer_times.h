// Calls of layers in one thread, and the time in them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "model/activity/activity.h"

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

  // Of a phase outside of layers; not of Phase::kNone.
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

}  // namespace jouleprof::layers
