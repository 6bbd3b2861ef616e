#include "spans/layers/thread_layers.h"

#include <time.h>

#include <algorithm>
#include <new>
#include <utility>

#include "spans/layers/layers.h"
#include "spans/layers/thread_layers_list.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::layers {
namespace {

std::atomic<bool> is_active{false};
std::atomic<bool> takes_cpu_time{false};
std::atomic<const Autograd*> autograd_in_use{nullptr};

constinit thread_local ThreadLayers* this_threads = nullptr;

struct AtThreadEnd {
  ~AtThreadEnd() {
    if (this_threads != nullptr) ThreadLayersList::all().end(std::exchange(this_threads, nullptr));
  }
};
thread_local AtThreadEnd at_thread_end;

Duration process_cpu_time() noexcept {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec};
}

}  // namespace

bool find_backward(model::Scope& scope) noexcept {
  const Autograd* autograd = autograd_in_use.load(std::memory_order_acquire);
  if (autograd == nullptr || !is_active.load(std::memory_order_relaxed)) return false;
  const auto node = autograd->current();
  if (!node) return false;
  scope.phase = model::Phase::kBackward;
  if (node->sequence == abi::torch::kAccumulateSequence) return true;
  const SequenceRing* ring = ThreadLayersList::find_ring(node->thread);
  if (ring == nullptr) return true;
  scope.layer = ring->find(node->sequence).value_or(model::kNone);
  return true;
}

ThreadLayers* ThreadLayers::mine() noexcept {
  if (this_threads != nullptr) return this_threads;
  ThreadLayers* made = ThreadLayersList::all().add();
  if (made == nullptr) return nullptr;
  made->scope_ = &scopes::this_thread();
  (void)at_thread_end;  // makes its destructor run at the thread's end
  return this_threads = made;
}

void ThreadLayers::enter(std::uint32_t layer, Outer& outer) noexcept {
  const HostTime now = HostClock::now();
  outer = {scope_->layer, scope_->phase, cell_};
  if (cell_ != nullptr) cell_->spend(now - last_);
  last_ = now;
  mark_sequence();
  if (depth_++ == 0) {
    // A layer called while a backward pass runs (checkpoints are computed again there) is part of
    // that.
    const bool backward = autograd_ != nullptr && autograd_->current().has_value();
    scope_->phase = backward ? model::Phase::kBackward : model::Phase::kForward;
    const bool cpu = takes_cpu_time.load(std::memory_order_relaxed);
    cpu_begin_ = cpu ? process_cpu_time() : Duration{};
    outermost_begin_ = now;
  }
  scope_->layer = layer;
  cell_ = times_.cell(layer, scope_->phase);
  if (cell_ != nullptr) cell_->call();
}

void ThreadLayers::leave(const Outer& outer) noexcept {
  const HostTime now = HostClock::now();
  if (cell_ != nullptr) cell_->spend(now - last_);
  last_ = now;
  mark_sequence();
  if (--depth_ == 0 && cpu_begin_ > Duration{}) {
    const Duration cpu = process_cpu_time() - cpu_begin_;
    if (cell_ != nullptr) cell_->spend_cpu(cpu);
    spent_.cpu += cpu;
    spent_.wall += now - outermost_begin_;
    if (scope_->phase == model::Phase::kForward) times_.phase_cell(scope_->phase).call();
  }
  scope_->layer = outer.layer;
  scope_->phase = outer.phase;
  cell_ = outer.cell;
}

void ThreadLayers::begin_phase(model::Phase phase) noexcept {
  if (!outermost() || !takes_cpu_time.load(std::memory_order_relaxed)) return;
  open_phase(phase) = {HostClock::now(), process_cpu_time(), spent_, true};
}

void ThreadLayers::end_phase(model::Phase phase) noexcept {
  OpenPhase& open = open_phase(phase);
  if (!std::exchange(open.open, false) || !outermost()) return;
  const Duration wall = HostClock::now() - open.begin;
  const Duration cpu = process_cpu_time() - open.cpu_begin;
  LayerTimes::Cell& cell = times_.phase_cell(phase);
  cell.call();
  cell.spend(std::max(wall - (spent_.wall - open.before.wall), Duration{}));
  cell.spend_cpu(std::max(cpu - (spent_.cpu - open.before.cpu), Duration{}));
  spent_ = {open.before.wall + wall, open.before.cpu + cpu};
}

// The sequence numbers since the last mark belong to the layer that the thread was in meanwhile.
void ThreadLayers::mark_sequence() noexcept {
  if (autograd_ == nullptr) {
    autograd_ = autograd_in_use.load(std::memory_order_acquire);
    if (autograd_ == nullptr) return;
    sequence_ = autograd_->next_sequence();
    return;
  }
  const std::uint64_t next = autograd_->next_sequence();
  if (next == sequence_) return;
  if (ring_ == nullptr && !no_ring_) {
    ring_ = ThreadLayersList::all().add_ring(autograd_->this_thread());
    no_ring_ = ring_ == nullptr;
    if (no_ring_) add_problem("too many threads call layers: some backward passes have no layer");
  }
  if (ring_ != nullptr) ring_->push(sequence_, next, scope_->layer);
  sequence_ = next;
}

void use_autograd(const Autograd& autograd) {
  if (autograd_in_use.load(std::memory_order_acquire) != nullptr) return;
  autograd_in_use.store(new Autograd(autograd), std::memory_order_release);
  scopes::set_finder(&find_backward);
}

void set_active(bool active) noexcept {
  if (active && !is_active.load(std::memory_order_relaxed)) ThreadLayersList::all().start();
  is_active.store(active, std::memory_order_relaxed);
}

void take_cpu_time(bool take) noexcept { takes_cpu_time.store(take, std::memory_order_relaxed); }

bool active() noexcept { return is_active.load(std::memory_order_relaxed); }

LayerTimes::~LayerTimes() {
  for (auto& page : pages_) delete page.load(std::memory_order_acquire);
}

LayerTimes::Page* LayerTimes::add_page(std::uint32_t index) noexcept {
  auto* page = new (std::nothrow) Page;
  pages_[index].store(page, std::memory_order_release);
  return page;
}

}  // namespace jouleprof::layers
