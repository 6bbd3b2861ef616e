#include "spans/windows/open_windows.h"

#include <algorithm>

namespace jouleprof::spans {
namespace {

constexpr std::uint32_t kBetweenThreads = 16;
constexpr std::uint32_t kTries = 128;

// Where the windows of this thread are, as a rule: no two threads write to one cache line.
std::size_t place_of_thread() noexcept {
  static std::atomic<std::uint32_t> next{0};
  static thread_local const std::uint32_t mine =
      next.fetch_add(kBetweenThreads, std::memory_order_relaxed);
  return mine % OpenWindows::kMost;
}

}  // namespace

void OpenWindows::add(const OpenWindow& window) noexcept {
  const std::size_t place = place_of_thread();
  for (std::uint32_t i = 0; i < kTries; ++i) {
    Entry& entry = entries_[(place + i) % kMost];
    std::int64_t is_free = 0;
    if (entry.begin.load(std::memory_order_relaxed) != 0 ||
        !entry.begin.compare_exchange_strong(is_free, -1, std::memory_order_acquire)) {
      continue;
    }
    entry.name.store(window.name, std::memory_order_relaxed);
    entry.begin.store(window.begin, std::memory_order_release);
    return;
  }
}

bool OpenWindows::take_out(Entry& entry, const OpenWindow& window) noexcept {
  std::int64_t begin = window.begin;
  return entry.begin.load(std::memory_order_acquire) == begin &&
         entry.name.load(std::memory_order_relaxed) == window.name &&
         entry.begin.compare_exchange_strong(begin, 0, std::memory_order_release);
}

void OpenWindows::remove(const OpenWindow& window) noexcept {
  const std::size_t place = place_of_thread();
  // Another thread may have begun it: then it is anywhere.
  for (std::size_t i = 0; i < kMost; ++i) {
    if (take_out(entries_[(place + i) % kMost], window)) return;
  }
}

std::vector<OpenWindow> OpenWindows::all() const {
  std::vector<OpenWindow> found;
  for (const Entry& entry : entries_) {
    const std::int64_t begin = entry.begin.load(std::memory_order_acquire);
    if (begin > 0) found.push_back({begin, entry.name.load(std::memory_order_relaxed)});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return found;
}

}  // namespace jouleprof::spans
