// The layer that a thread is in: for launch callbacks (spans/scopes), for the backward pass
// (sequence_ring.h), and for the time spent there (layer_times.h).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "model/activity/activity.h"
#include "spans/layers/autograd.h"
#include "spans/layers/layer_times.h"
#include "spans/layers/sequence_ring.h"

namespace jouleprof::layers {

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
