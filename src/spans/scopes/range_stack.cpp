#include "spans/scopes/range_stack.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "spans/scopes/scopes.h"

namespace jouleprof::scopes {
namespace {

// --- What XLA opens around its operations ---

constexpr std::string_view kRange = "Thunk:#";
constexpr std::string_view kName = "name=";

// Names that JAX gives to its own loops, branches and calls.
constexpr std::array<std::string_view, 17> kOwn = {"while",
                                                   "body",
                                                   "cond",
                                                   "scan",
                                                   "closed_call",
                                                   "core_call",
                                                   "named_call",
                                                   "checkpoint",
                                                   "remat",
                                                   "remat2",
                                                   "pjit",
                                                   "shard_map",
                                                   "rematted_computation",
                                                   "custom_jvp_call",
                                                   "custom_vjp_call",
                                                   "xla_call",
                                                   "body_fun"};

bool is_own(std::string_view name) {
  return name.starts_with("branch_") || std::ranges::find(kOwn, name) != kOwn.end();
}

// Calls part(text) for what lies between slashes that are in no brackets.
template <class Part>
void each_part(std::string_view names, Part part) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= names.size(); ++i) {
    if (i < names.size() && names[i] == '(') ++depth;
    if (i < names.size() && names[i] == ')') --depth;
    if (i < names.size() && (names[i] != '/' || depth > 0)) continue;
    if (i > begin) part(names.substr(begin, i - begin));
    begin = i + 1;
  }
}

constexpr int kMostBrackets = 32;  // within each other; a hostile name must not end the stack

// Adds the scopes in `names`. A transformation holds scopes in brackets, a function its own name.
void add_scopes(std::string_view names, XlaOperation& to, int depth = 0) {
  if (depth > kMostBrackets) return;
  each_part(names, [&](std::string_view part) {
    const std::size_t bracket = part.find('(');
    if (bracket == std::string_view::npos || part.back() != ')') {
      if (!is_own(part)) to.path.emplace_back(part);
      return;
    }
    const std::string_view by = part.substr(0, bracket);
    if (by == "transpose") to.phase = model::Phase::kBackward;
    if (by == "jvp" && to.phase == model::Phase::kNone) to.phase = model::Phase::kForward;
    if (by != "jit" && by != "pjit" && by != "pmap") {
      add_scopes(part.substr(bracket + 1, part.size() - bracket - 2), to, depth + 1);
    }
  });
}

// Where the number that ends a name begins, with the line before it: "_6" of "Dense_6"; else npos.
std::size_t number_of(std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  const bool numbered = end != std::string_view::npos && end + 1 < name.size() && name[end] == '_';
  return numbered ? end : std::string_view::npos;
}

// "Dense" of "Dense_6".
std::string type_of(const std::string& name) {
  const std::size_t number = number_of(name);
  return number > 0 ? name.substr(0, number) : name;
}

// The innermost layer of the path; the outermost one has the name of its type, as of PyTorch.
std::uint32_t layer_of(const std::vector<std::string>& path) {
  model::Layer layer;
  std::uint32_t id = model::kNone;
  for (std::size_t i = 0; i < path.size(); ++i) {
    layer.name = i < 2 ? path[i] : layer.name + "." + path[i];
    layer.type = type_of(path[i]);
    layer.parent = id;
    id = add_once(layer);
  }
  return id;
}

// Whether the last name is of a scope: operations of JAX's are in small letters, without a number.
bool is_scope(std::string_view last) {
  return std::isupper(static_cast<unsigned char>(last.front())) != 0 ||
         number_of(last) != std::string_view::npos;
}

// Scopes of ranges that a thread had before; none once the thread ends.
struct Known {
  struct Slot {
    std::size_t key = 0;  // 0: empty
    model::Scope scope;
  };
  using Slots = std::array<Slot, 4096>;

  Slots* slots = nullptr;
  bool ended = false;

  ~Known() {
    delete std::exchange(slots, nullptr);
    ended = true;
  }
};
constinit thread_local Known known_operations;

// The scope of an operation's range, without range; absent for others, and without memory. Defines
// its layers (scopes.h). Allocates only for a new name.
std::optional<model::Scope> xla_scope(std::string_view range) noexcept {
  if (!range.starts_with(kRange)) return std::nullopt;
  try {
    if (known_operations.ended) return std::nullopt;
    if (known_operations.slots == nullptr) known_operations.slots = new Known::Slots;
    const std::size_t key = std::hash<std::string_view>{}(range) | 1;
    Known::Slot& slot = (*known_operations.slots)[(key >> 1) % known_operations.slots->size()];
    if (slot.key == key) return slot.scope;
    const XlaOperation operation = *xla_operation(range);
    model::Scope scope;
    scope.phase = operation.phase;
    scope.layer = layer_of(operation.path);
    if (scope.phase == model::Phase::kNone && scope.layer != model::kNone) {
      scope.phase = model::Phase::kForward;  // inference
    }
    slot = {key, scope};
    return scope;
  } catch (...) {
    return std::nullopt;
  }
}

// --- The open ranges of the process that any thread may end ---
// All functions from any thread; they take no locks and allocate nothing.

constexpr std::size_t kPlaces = 4096;
static_assert((kPlaces & (kPlaces - 1)) == 0);

// A place's turn is odd while a range has it, and one more when that closes: so an old number never
// fits a range that came to the same place later.
std::array<std::atomic<std::uint64_t>, kPlaces> turns;
std::atomic<std::size_t> next_place{0};
std::atomic<std::uint64_t> opened{0};
std::atomic<std::uint64_t> closed{0};

std::atomic<std::uint64_t>& place_of(std::uint64_t number) noexcept {
  return turns[number % kPlaces];
}

// A number for a range that opens now, never used twice; 0 when 4096 are open.
std::uint64_t open_range() noexcept {
  // A program that never ends what it starts does not pay for the search each time.
  // `opened` first: ranges that begin and end between the two reads must not look like open ones.
  const std::uint64_t begun = opened.load(std::memory_order_acquire);
  if (begun >= closed.load(std::memory_order_relaxed) + kPlaces) return 0;
  for (std::size_t tries = 0; tries != kPlaces; ++tries) {
    const std::size_t place = next_place.fetch_add(1, std::memory_order_relaxed) % kPlaces;
    std::uint64_t turn = turns[place].load(std::memory_order_relaxed);
    if (turn % 2 == 0 && turns[place].compare_exchange_strong(turn, turn + 1)) {
      opened.fetch_add(1, std::memory_order_relaxed);
      return (turn + 1) * kPlaces + place;
    }
  }
  return 0;
}

// Closes it. False when it is not open.
bool close_range(std::uint64_t number) noexcept {
  std::uint64_t turn = number / kPlaces;
  if (turn % 2 == 0 || !place_of(number).compare_exchange_strong(turn, turn + 1)) return false;
  closed.fetch_add(1, std::memory_order_release);
  return true;
}

bool is_open(std::uint64_t number) noexcept {
  return place_of(number).load(std::memory_order_acquire) == number / kPlaces;
}

// How many were closed so far. While it is unchanged, every range that is_open() stays open.
std::uint64_t ranges_closed() noexcept { return closed.load(std::memory_order_acquire); }

// --- The ranges of a thread ---

struct Level {
  const void* domain = nullptr;
  std::uint64_t started = 0;  // its number, where any thread may end it
  std::uint32_t range = model::kNone;
  // Of an operation of XLA, which has the range around it: layer and phase outside of it.
  bool is_operation = false;
  std::uint32_t layer = model::kNone;
  model::Phase phase = model::Phase::kNone;
};

struct KnownRange {
  std::uint64_t key = 0;
  std::uint32_t id = model::kNone;
};

struct ThreadRanges {
  std::array<Level, 64> levels;
  std::size_t depth = 0;
  std::size_t beyond = 0;         // pushed levels that there was no room for
  std::uint64_t closed_seen = 0;  // ranges_closed() when the levels were last looked through
  std::array<KnownRange, 256> known;
};

constinit thread_local ThreadRanges thread_ranges;

std::atomic<int> threads_in_ranges{0};
// Of the thread that changed its ranges last.
std::atomic<std::uint32_t> newest{model::kNone};
std::atomic<std::uint64_t> newest_started{0};

// A thread that ends within ranges is in none.
struct AtThreadExit {
  bool in_ranges = false;
  ~AtThreadExit() {
    if (in_ranges) threads_in_ranges.fetch_sub(1, std::memory_order_relaxed);
    in_ranges = false;
  }
};
thread_local AtThreadExit at_thread_exit;

void changed(std::size_t before, const ThreadRanges& mine) noexcept {
  if ((before == 0) != (mine.depth == 0)) {
    at_thread_exit.in_ranges = mine.depth != 0;
    threads_in_ranges.fetch_add(mine.depth != 0 ? 1 : -1, std::memory_order_relaxed);
  }
  this_thread().range = mine.depth == 0 ? model::kNone : mine.levels[mine.depth - 1].range;
  newest.store(this_thread().range, std::memory_order_relaxed);
  newest_started.store(mine.depth == 0 ? 0 : mine.levels[mine.depth - 1].started,
                       std::memory_order_relaxed);
}

std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ x >> 32) * 0xD6E8FEB86659FD93ULL;
  x = (x ^ x >> 32) * 0xD6E8FEB86659FD93ULL;
  return x ^ x >> 32;
}

std::uint64_t key_of(std::string_view name, std::uint32_t parent) noexcept {
  std::uint64_t key = mixed(name.size() << 32 ^ parent ^ 0x9E3779B97F4A7C15ULL);
  while (!name.empty()) {
    std::uint64_t word = 0;
    const std::size_t n = std::min(name.size(), sizeof word);
    std::memcpy(&word, name.data(), n);
    key = mixed(key + word * 0x9E3779B97F4A7C15ULL);
    name.remove_prefix(n);
  }
  return key | 1;  // 0 marks an empty place
}

// What `make` gives, or gave for the same key before; the range around it when there is no memory.
template <typename Make>
std::uint32_t known(ThreadRanges& mine, std::uint64_t key, std::uint32_t parent,
                    Make&& make) noexcept {
  KnownRange& slot = mine.known[(key >> 1) % mine.known.size()];
  if (slot.key == key) return slot.id;
  try {
    slot = {key, make()};
  } catch (...) {
    return parent;
  }
  return slot.id;
}

std::uint32_t id_of(ThreadRanges& mine, std::string_view name, std::uint32_t parent) noexcept {
  return known(mine, key_of(name, parent), parent, [&] {
    return add(model::Range{short_range(name), parent});
  });
}

// The range of the same name within another one.
std::uint32_t moved(ThreadRanges& mine, std::uint32_t range, std::uint32_t parent) noexcept {
  const std::uint64_t key = mixed(std::uint64_t{range} << 32 ^ parent ^ 0xC2B2AE3D27D4EB4FULL) | 1;
  return known(mine, key, parent, [&] { return add_within(range, parent); });
}

int count(const ThreadRanges& mine, const void* domain) noexcept {
  int n = 0;
  for (std::size_t i = 0; i != mine.depth; ++i) {
    n += mine.levels[i].started == 0 && mine.levels[i].domain == domain;
  }
  return n;
}

void open(ThreadRanges& mine, const void* domain, std::uint64_t started,
          std::string_view name) noexcept {
  const std::uint32_t around = mine.depth == 0 ? model::kNone : mine.levels[mine.depth - 1].range;
  Level& level = mine.levels[mine.depth++];
  level = {domain, started, around, false, model::kNone, model::Phase::kNone};
  if (const auto operation = xla_scope(name)) {
    model::Scope& now = this_thread();
    level.is_operation = true;
    level.layer = std::exchange(now.layer, operation->layer);
    level.phase = std::exchange(now.phase, operation->phase);
  } else {
    level.range = id_of(mine, name, around);
  }
  changed(mine.depth - 1, mine);
}

// The operation is over: what was outside of it is outside of the next one within it, or now.
void leave(const Level& operation, ThreadRanges& mine, std::size_t at) noexcept {
  for (std::size_t i = at + 1; i < mine.depth; ++i) {
    if (!mine.levels[i].is_operation) continue;
    mine.levels[i].layer = operation.layer;
    mine.levels[i].phase = operation.phase;
    return;
  }
  this_thread().layer = operation.layer;
  this_thread().phase = operation.phase;
}

// Takes out all levels from `at` on that `out` says.
template <typename Out>
void take_out(ThreadRanges& mine, std::size_t at, Out&& out) noexcept {
  const std::size_t before = mine.depth;
  std::size_t kept = at;
  for (std::size_t i = at; i != before; ++i) {
    Level level = mine.levels[i];
    if (out(level)) {
      if (level.is_operation) leave(level, mine, i);
      continue;
    }
    if (kept != i) {
      const std::uint32_t around = kept == 0 ? model::kNone : mine.levels[kept - 1].range;
      level.range = level.is_operation ? around : moved(mine, level.range, around);
    }
    mine.levels[kept++] = level;
  }
  mine.depth = kept;
  if (kept != before) changed(before, mine);
}

}  // namespace

int push_range(const void* domain, std::string_view name) noexcept {
  ThreadRanges& mine = thread_ranges;
  drop_ended_ranges();
  const int around = count(mine, domain);
  if (mine.depth == mine.levels.size()) {
    ++mine.beyond;
    return around + static_cast<int>(mine.beyond) - 1;
  }
  open(mine, domain, 0, name);
  return around;
}

int pop_range(const void* domain) noexcept {
  ThreadRanges& mine = thread_ranges;
  drop_ended_ranges();
  if (mine.beyond > 0) {
    --mine.beyond;
    return count(mine, domain) + static_cast<int>(mine.beyond);
  }
  std::size_t at = mine.depth;
  const auto is_its = [&](const Level& level) {
    return level.started == 0 && level.domain == domain;
  };
  while (at != 0 && !is_its(mine.levels[at - 1])) --at;
  if (at == 0) return -1;
  bool done = false;
  take_out(mine, at - 1, [&](const Level&) { return !std::exchange(done, true); });
  return count(mine, domain);
}

std::uint64_t start_range(std::string_view name) noexcept {
  ThreadRanges& mine = thread_ranges;
  drop_ended_ranges();
  if (mine.depth == mine.levels.size()) return 0;
  const std::uint64_t started = open_range();
  if (started != 0) open(mine, nullptr, started, name);
  return started;
}

bool end_range(std::uint64_t started) noexcept {
  if (!close_range(started)) return false;
  drop_ended_ranges();
  return true;
}

void drop_ended_ranges() noexcept {
  const std::uint64_t so_far = ranges_closed();
  ThreadRanges& mine = thread_ranges;
  if (so_far == std::exchange(mine.closed_seen, so_far)) return;
  take_out(mine, 0,
           [](const Level& level) { return level.started != 0 && !is_open(level.started); });
}

std::uint32_t lone_range() noexcept {
  if (threads_in_ranges.load(std::memory_order_relaxed) != 1) return model::kNone;
  const std::uint64_t started = newest_started.load(std::memory_order_relaxed);
  if (started != 0 && !is_open(started)) return model::kNone;
  return newest.load(std::memory_order_relaxed);
}

std::optional<XlaOperation> xla_operation(std::string_view range) {
  if (!range.starts_with(kRange)) return std::nullopt;
  range.remove_prefix(kRange.size());
  XlaOperation out;
  if (!range.starts_with(kName)) return out;
  range = range.substr(kName.size(), range.find_first_of(",#") - kName.size());
  std::string_view last;
  each_part(range, [&](std::string_view part) { last = part; });
  if (last.empty() || last.find('(') != std::string_view::npos || is_scope(last)) {
    add_scopes(range, out);
    return out;
  }
  add_scopes(range.substr(0, static_cast<std::size_t>(last.data() - range.data())), out);
  return out;
}

std::string short_range(std::string_view range) {
  constexpr std::string_view kModule = "hlo_module=";
  const std::size_t at = range.find(kModule);
  if (!range.starts_with("XlaModule:#") || at == std::string_view::npos) return std::string(range);
  range.remove_prefix(at + kModule.size());
  return std::string(model::kXlaModule) + std::string(range.substr(0, range.find_first_of(",#")));
}

}  // namespace jouleprof::scopes
