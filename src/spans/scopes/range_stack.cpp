#include "spans/scopes/range_stack.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>

#include "spans/scopes/scopes.h"

namespace jouleprof::scopes {
namespace {

struct Level {
  const void* domain = nullptr;
  std::uint32_t range = model::kNone;
};

struct KnownRange {
  std::uint64_t key = 0;
  std::uint32_t id = model::kNone;
};

struct ThreadRanges {
  std::array<Level, 64> levels;
  std::size_t depth = 0;
  std::size_t beyond = 0;  // levels that there was no room for
  std::array<KnownRange, 256> known;
};

constinit thread_local ThreadRanges thread_ranges;

std::atomic<int> threads_in_ranges{0};
std::atomic<std::uint32_t> newest{model::kNone};

void changed(std::size_t before, const ThreadRanges& mine) noexcept {
  if (before == 0 && mine.depth != 0) threads_in_ranges.fetch_add(1, std::memory_order_relaxed);
  if (before != 0 && mine.depth == 0) threads_in_ranges.fetch_sub(1, std::memory_order_relaxed);
  newest.store(this_thread().range, std::memory_order_relaxed);
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

std::uint32_t id_of(ThreadRanges& mine, std::string_view name, std::uint32_t parent) noexcept {
  const std::uint64_t key = key_of(name, parent);
  KnownRange& slot = mine.known[(key >> 1) % mine.known.size()];
  if (slot.key == key) return slot.id;
  try {
    slot = {key, add(model::Range{std::string(name), parent})};
  } catch (...) {  // no memory: the range around it stays
    return parent;
  }
  return slot.id;
}

int count(const ThreadRanges& mine, const void* domain) noexcept {
  int n = 0;
  for (std::size_t i = 0; i != mine.depth; ++i) n += mine.levels[i].domain == domain;
  return n;
}

}  // namespace

int push_range(const void* domain, std::string_view name) noexcept {
  ThreadRanges& mine = thread_ranges;
  const int around = count(mine, domain);
  if (mine.depth == mine.levels.size()) {
    ++mine.beyond;
    return around + static_cast<int>(mine.beyond) - 1;
  }
  std::uint32_t& range = this_thread().range;
  range = id_of(mine, name, range);
  mine.levels[mine.depth++] = {domain, range};
  changed(mine.depth - 1, mine);
  return around;
}

int pop_range(const void* domain) noexcept {
  ThreadRanges& mine = thread_ranges;
  if (mine.beyond > 0) {
    --mine.beyond;
    return count(mine, domain) + static_cast<int>(mine.beyond);
  }
  std::size_t at = mine.depth;
  while (at != 0 && mine.levels[at - 1].domain != domain) --at;
  if (at == 0) return -1;
  std::copy(mine.levels.begin() + static_cast<std::ptrdiff_t>(at),
            mine.levels.begin() + static_cast<std::ptrdiff_t>(mine.depth),
            mine.levels.begin() + static_cast<std::ptrdiff_t>(at) - 1);
  --mine.depth;
  this_thread().range = mine.depth == 0 ? model::kNone : mine.levels[mine.depth - 1].range;
  changed(mine.depth + 1, mine);
  return count(mine, domain);
}

std::uint32_t lone_range() noexcept {
  return threads_in_ranges.load(std::memory_order_relaxed) == 1
             ? newest.load(std::memory_order_relaxed)
             : model::kNone;
}

}  // namespace jouleprof::scopes
