#include "spans/scopes/scopes.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/process/threads.h"
#include "spans/scopes/range_stack.h"

namespace jouleprof::scopes {
namespace {

constexpr std::size_t kMost = 1'000'000;
// A program that names each range anew ("step 123456") must not grow for ever.
constexpr std::size_t kMostNameBytes = std::size_t{32} << 20;

struct ScopeHash {
  std::size_t operator()(const model::Scope& s) const noexcept {
    std::uint64_t x =
        (std::uint64_t{s.layer} << 32 | s.range) + static_cast<std::uint64_t>(s.phase);
    x *= 0x9E3779B97F4A7C15ULL;
    return x ^ x >> 29;
  }
};

struct RangeHash {
  std::size_t operator()(const model::Range& r) const noexcept {
    return std::hash<std::string>{}(r.name) * 31 + r.parent;
  }
};

struct Registry {
  std::mutex mutex;  // guards all that follows
  std::vector<model::Layer> layers;
  std::vector<const model::Range*> ranges;
  std::vector<model::Scope> scopes;
  std::unordered_map<model::Range, std::uint32_t, RangeHash> layer_ids;  // of add_once(), by names
  std::unordered_map<model::Range, std::uint32_t, RangeHash> range_ids;
  std::unordered_map<model::Scope, std::uint32_t, ScopeHash> scope_ids;
  std::size_t name_bytes = 0;
  std::size_t reported_layers = 0;
  std::size_t reported_ranges = 0;
  std::size_t reported_scopes = 0;

  // A child made by fork starts with a free lock and has sent nothing.
  void watch_forks();
};

// Threads launch work while the process exits.
Registry& registry() {
  static NeverDestroyed<Registry> only;
  static const bool watches = (only->watch_forks(), true);
  (void)watches;
  return *only;
}

void Registry::watch_forks() {
  pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                 [] {
                   Registry& all = registry();
                   all.reported_layers = all.reported_ranges = all.reported_scopes = 0;
                   all.mutex.unlock();
                 });
}

std::uint32_t id_of(const model::Scope& scope) noexcept {
  try {
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    if (const auto found = all.scope_ids.find(scope); found != all.scope_ids.end()) {
      return found->second;
    }
    if (all.scopes.size() >= kMost) return model::kNone;
    const auto id = static_cast<std::uint32_t>(all.scopes.size());
    all.scopes.push_back(scope);
    all.scope_ids.emplace(scope, id);
    return id;
  } catch (...) {  // no memory: the launch stays without a scope
    return model::kNone;
  }
}

struct Known {
  model::Scope scope;
  std::uint32_t id = model::kNone;
};

struct ThreadScopes {
  model::Scope now;
  Known last;
  std::array<Known, 256> known;
};

constinit thread_local ThreadScopes thread_scopes;
std::atomic<Finder> finder_in_use{nullptr};

}  // namespace

model::Scope& this_thread() noexcept { return thread_scopes.now; }

void set_finder(Finder finder) noexcept { finder_in_use.store(finder, std::memory_order_release); }

std::uint32_t current() noexcept {
  ThreadScopes& mine = thread_scopes;
  if (mine.now.range != model::kNone) drop_ended_ranges();
  model::Scope scope = mine.now;
  if (scope.layer == model::kNone) {
    if (const Finder ask = finder_in_use.load(std::memory_order_acquire)) ask(scope);
    if (scope.phase == model::Phase::kBackward && scope.range == model::kNone) {
      scope.range = lone_range();
    }
  }
  if (scope == mine.last.scope) return mine.last.id;
  if (scope == model::Scope{}) return model::kNone;
  Known& slot = mine.known[ScopeHash{}(scope) % mine.known.size()];
  if (slot.scope != scope || slot.id == model::kNone) slot = {scope, id_of(scope)};
  mine.last = slot;
  return slot.id;
}

std::uint32_t merged(std::uint32_t node, std::uint32_t launch) noexcept {
  if (node == launch || launch == model::kNone) return node;
  if (node == model::kNone) return launch;
  model::Scope scope;
  model::Scope around;
  {
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    if (node >= all.scopes.size() || launch >= all.scopes.size()) return node;
    scope = all.scopes[node];
    around = all.scopes[launch];
  }
  if (scope.layer == model::kNone) scope.layer = around.layer;
  if (scope.phase == model::Phase::kNone) scope.phase = around.phase;
  if (around.range != model::kNone) scope.range = around.range;
  return id_of(scope);
}

std::uint32_t add(const model::Layer& layer) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  if (all.layers.size() >= kMost) return model::kNone;
  all.layers.push_back(layer);
  return static_cast<std::uint32_t>(all.layers.size() - 1);
}

std::uint32_t add_once(const model::Layer& layer) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  const model::Range named{layer.name, layer.parent};
  if (const auto found = all.layer_ids.find(named); found != all.layer_ids.end()) {
    return found->second;
  }
  if (all.layers.size() >= kMost || all.name_bytes + layer.name.size() > kMostNameBytes) {
    return model::kNone;
  }
  const auto id = static_cast<std::uint32_t>(all.layers.size());
  all.layers.push_back(layer);
  all.layer_ids.emplace(named, id);
  all.name_bytes += layer.name.size();
  return id;
}

std::uint32_t add(const model::Range& range) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  if (const auto found = all.range_ids.find(range); found != all.range_ids.end()) {
    return found->second;
  }
  if (all.ranges.size() >= kMost || all.name_bytes + range.name.size() > kMostNameBytes) {
    return model::kNone;
  }
  const auto id = static_cast<std::uint32_t>(all.ranges.size());
  all.ranges.push_back(&all.range_ids.emplace(range, id).first->first);
  all.name_bytes += range.name.size();
  return id;
}

std::uint32_t add_within(std::uint32_t range, std::uint32_t parent) {
  Registry& all = registry();
  std::string name;
  {
    const std::scoped_lock lock(all.mutex);
    if (range >= all.ranges.size()) return model::kNone;
    name = all.ranges[range]->name;
  }
  return add(model::Range{std::move(name), parent});
}

void send_all_again() {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  all.reported_layers = all.reported_ranges = all.reported_scopes = 0;
}

void send(model::ActivitySink& sink) {
  // The sink writes to a file: it gets copies, so that no launch waits for it.
  std::vector<model::Layer> layers;
  std::vector<model::Range> ranges;
  std::vector<model::Scope> scopes;
  std::size_t layer = 0;
  std::size_t range = 0;
  std::size_t scope = 0;
  {
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    layer = std::exchange(all.reported_layers, all.layers.size());
    range = std::exchange(all.reported_ranges, all.ranges.size());
    scope = std::exchange(all.reported_scopes, all.scopes.size());
    layers.assign(all.layers.begin() + static_cast<std::ptrdiff_t>(layer), all.layers.end());
    for (std::size_t i = range; i != all.ranges.size(); ++i) ranges.push_back(*all.ranges[i]);
    scopes.assign(all.scopes.begin() + static_cast<std::ptrdiff_t>(scope), all.scopes.end());
  }
  for (const auto& l : layers) sink.define(static_cast<std::uint32_t>(layer++), l);
  for (const auto& r : ranges) sink.define(static_cast<std::uint32_t>(range++), r);
  for (const auto& s : scopes) sink.define(static_cast<std::uint32_t>(scope++), s);
}

}  // namespace jouleprof::scopes
