// Windows that have begun and not ended, in memory that may outlive the process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace jouleprof::spans {

struct OpenWindow {
  std::int64_t begin = 0;  // nanoseconds of CLOCK_MONOTONIC, above 0
  std::uint32_t name = 0;

  bool operator==(const OpenWindow&) const = default;
};

// Any thread may end a window. All bytes zero: none is open. Thread safety: all functions, and
// from several processes.
class OpenWindows {
 public:
  static constexpr std::size_t kMost = 2048;

  // Without effect where there is no room near the thread's place.
  void add(const OpenWindow& window) noexcept;
  void remove(const OpenWindow& window) noexcept;
  std::vector<OpenWindow> all() const;  // by begin

  // The process has closed its monitor: what is open stays so, though the process may live.
  void close() noexcept { closed_ = true; }
  bool closed() const noexcept { return closed_; }

 private:
  struct alignas(64) Entry {
    std::atomic<std::int64_t> begin{0};  // 0: free; below: being written
    std::atomic<std::uint32_t> name{0};
  };
  static bool take_out(Entry& entry, const OpenWindow& window) noexcept;

  std::array<Entry, kMost> entries_;
  std::atomic<bool> closed_{false};
};

}  // namespace jouleprof::spans
