#include "spans/layers/thread_layers_list.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <new>
#include <utility>

#include "base/never_destroyed.h"
#include "model/activity/activity_codec.h"
#include "spans/layers/layers.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::layers {
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

}  // namespace jouleprof::layers
