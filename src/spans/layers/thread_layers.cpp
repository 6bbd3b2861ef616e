#include "spans/layers/thread_layers.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/process/threads.h"
#include "model/activity/activity.h"
#include "model/activity/activity_codec.h"
#include "spans/layers/layers.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::layers {
namespace {

struct Replay {
  std::optional<model::KernelRerun> kernel;  // none: preparation
  HostTime begin{};
  HostTime end{};
};

struct Replays {
  std::mutex mutex;  // guards what follows
  HostTime last{};
  std::vector<Replay> not_reported;
};

// Never destroyed: the tracer's thread sends while the process exits.
Replays& all() {
  static auto* only = new Replays;
  return *only;
}

}  // namespace

// The layers of all threads of this process, for its tracer.
// Thread safety: all functions from any thread; send() and start() from one at a time.
class ThreadLayersList {
 public:
  // Never destroyed: threads call layers while the process exits.
  static ThreadLayersList& all();

  // For the calling thread; nullptr: there are too many threads, or no memory.
  ThreadLayers* add() noexcept;
  // The thread ends: another thread may use its place.
  void end(ThreadLayers* thread) noexcept;

  // For the thread of this number (PyTorch's); nullptr: there are too many threads, or no memory.
  SequenceRing* add_ring(std::uint64_t thread) noexcept;
  // That of a thread; nullptr: it has none. Takes no lock.
  static const SequenceRing* find_ring(std::uint64_t thread) noexcept;

  // As send() and forget() of layers.h.
  void send(model::ActivitySink& sink, HostTime now);
  void forget_all();
  // Begins the time of the first chunk.
  void start() { reported_ = HostClock::now(); }

  std::string problem();
  void add_problem(const std::string& text);

 private:
  void after_fork();
  void drop();

  std::mutex mutex_;  // guards all but reported_
  std::vector<std::unique_ptr<ThreadLayers>> threads_;
  std::vector<ThreadLayers*> free_;
  std::size_t next_ring_ = 0;
  std::string problem_;
  HostTime reported_ = HostClock::now();  // the end of the last chunk
};

namespace {

constexpr std::size_t kMaxThreads = 4096;
constexpr std::size_t kMaxRings = 128;
constexpr std::size_t kMostProblemBytes = 4000;

std::array<std::atomic<SequenceRing*>, kMaxRings> rings{};
constinit thread_local const SequenceRing* last_ring = nullptr;

}  // namespace

ThreadLayersList& ThreadLayersList::all() {
  static NeverDestroyed<ThreadLayersList> only;
  // A forked child has one thread, and sends only its own calls.
  static const int watches =
      pthread_atfork([] { all().mutex_.lock(); }, [] { all().mutex_.unlock(); },
                     [] {
                       all().after_fork();
                       all().mutex_.unlock();
                     });
  (void)watches;
  return *only;
}

ThreadLayers* ThreadLayersList::add() noexcept {
  try {
    const std::scoped_lock lock(mutex_);
    if (!free_.empty()) {
      ThreadLayers* again = free_.back();
      free_.pop_back();
      again->ended_.store(false, std::memory_order_relaxed);
      again->sequence_ = 0;
      again->cell_ = nullptr;
      again->depth_ = 0;
      again->cpu_begin_ = {};
      again->phases_ = {};
      again->autograd_ = nullptr;
      return again;
    }
    if (threads_.size() >= kMaxThreads) return nullptr;
    threads_.push_back(std::make_unique<ThreadLayers>());
    free_.reserve(threads_.size());
    return threads_.back().get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void ThreadLayersList::end(ThreadLayers* thread) noexcept {
  if (thread->ring_ != nullptr) thread->ring_->ended.store(true, std::memory_order_release);
  thread->ring_ = nullptr;
  thread->no_ring_ = false;
  thread->ended_.store(true, std::memory_order_release);
  const std::scoped_lock lock(mutex_);
  free_.push_back(thread);  // add() reserved room
}

SequenceRing* ThreadLayersList::add_ring(std::uint64_t thread) noexcept {
  const std::scoped_lock lock(mutex_);
  for (auto& place : rings) {
    SequenceRing* ring = place.load(std::memory_order_relaxed);
    if (ring == nullptr) {
      ring = new (std::nothrow) SequenceRing;
      if (ring == nullptr) return nullptr;
      ring->thread.store(thread, std::memory_order_relaxed);
      place.store(ring, std::memory_order_release);
      return ring;
    }
  }
  for (std::size_t i = 0; i < rings.size(); ++i) {
    next_ring_ = (next_ring_ + 1) % rings.size();
    SequenceRing* ring = rings[next_ring_].load(std::memory_order_relaxed);
    if (!ring->ended.load(std::memory_order_acquire)) continue;
    ring->thread.store(0, std::memory_order_release);
    ring->clear();
    ring->ended.store(false, std::memory_order_relaxed);
    ring->thread.store(thread, std::memory_order_release);
    return ring;
  }
  return nullptr;
}

const SequenceRing* ThreadLayersList::find_ring(std::uint64_t thread) noexcept {
  if (last_ring != nullptr && last_ring->thread.load(std::memory_order_acquire) == thread) {
    return last_ring;
  }
  for (const auto& place : rings) {
    const SequenceRing* ring = place.load(std::memory_order_acquire);
    if (ring == nullptr) return nullptr;
    if (ring->thread.load(std::memory_order_acquire) == thread) return last_ring = ring;
  }
  return nullptr;
}

void ThreadLayersList::send(model::ActivitySink& sink, HostTime now) {
  std::map<std::pair<std::uint32_t, model::Phase>, LayerTime> sums;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& thread : threads_) {
      thread->times_.drain([&](std::uint32_t layer, model::Phase phase, const LayerTime& more) {
        LayerTime& sum = sums[{layer, phase}];
        sum.calls += more.calls;
        sum.wall_nanoseconds += more.wall_nanoseconds;
        sum.cpu_nanoseconds += more.cpu_nanoseconds;
      });
    }
  }
  const HostTime begin = std::exchange(reported_, now);
  if (sums.empty()) return;
  scopes::send(sink);  // after the sums were taken, so that it has all their layers
  model::ActivityEncoder layers;
  model::ActivityEncoder phases;
  for (const auto& [key, sum] : sums) {
    const auto& [layer, phase] = key;
    if (layer == model::kNone) {
      phases.add(model::PhaseEntry{phase, sum.calls, sum.wall_nanoseconds, sum.cpu_nanoseconds});
    } else {
      layers.add(
          model::LayerEntry{layer, phase, sum.calls, sum.wall_nanoseconds, sum.cpu_nanoseconds});
    }
  }
  const auto add = [&](model::ChunkKind kind, std::string bytes) {
    if (bytes.empty()) return;
    model::ActivityChunk chunk;
    chunk.kind = kind;
    chunk.begin = std::min(begin, now);
    chunk.end = now;
    chunk.bytes = std::move(bytes);
    sink.add(chunk);
  };
  add(model::ChunkKind::kLayers, layers.take());
  add(model::ChunkKind::kPhases, phases.take());
}

void ThreadLayersList::forget_all() {
  const std::scoped_lock lock(mutex_);
  drop();
}

std::string ThreadLayersList::problem() {
  const std::scoped_lock lock(mutex_);
  return problem_;
}

void ThreadLayersList::add_problem(const std::string& text) {
  const std::scoped_lock lock(mutex_);
  if (text.empty() || problem_.find(text) != std::string::npos) return;
  if (problem_.size() + text.size() > kMostProblemBytes) return;
  problem_ += (problem_.empty() ? "" : "; ") + text;
}

void ThreadLayersList::after_fork() {
  set_active(false);
  drop();
  reported_ = HostClock::now();
}

void ThreadLayersList::drop() {
  for (const auto& thread : threads_) {
    thread->times_.drain([](std::uint32_t, model::Phase, const LayerTime&) {});
  }
}

void send(model::ActivitySink& sink, HostTime now) {
  ThreadLayersList::all().send(sink, now);
  send_replays(sink);
}

void forget() { ThreadLayersList::all().forget_all(); }

std::string problem() { return ThreadLayersList::all().problem(); }
void add_problem(const std::string& text) { ThreadLayersList::all().add_problem(text); }

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

void begin_replay() {
  set_active(false);
  const std::scoped_lock lock(all().mutex);
  all().last = HostClock::now();
}

namespace {

void add(const std::optional<model::KernelRerun>& kernel) {
  const HostTime now = HostClock::now();
  const std::scoped_lock lock(all().mutex);
  all().not_reported.push_back({kernel, std::exchange(all().last, now), now});
}

}  // namespace

void replay_prepared() { add(std::nullopt); }

void replayed_kernel(const model::KernelRerun& loop) { add(loop); }

void end_replay() { set_active(true); }

void send_replays(model::ActivitySink& sink) {
  std::vector<Replay> replays;
  {
    const std::scoped_lock lock(all().mutex);
    replays.swap(all().not_reported);
  }
  if (replays.empty()) return;
  scopes::send(sink);
  for (const Replay& replay : replays) {
    model::ActivityEncoder encoder;
    if (replay.kernel) encoder.add(*replay.kernel);
    model::ActivityChunk chunk;
    chunk.kind = model::ChunkKind::kReplay;
    chunk.begin = replay.begin;
    chunk.end = replay.end;
    chunk.bytes = encoder.take();
    sink.add(chunk);
  }
}

}  // namespace jouleprof::layers
