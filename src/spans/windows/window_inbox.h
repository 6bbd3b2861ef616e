// Collects windows from all threads of a program; none of them waits.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "spans/windows/shared_rings.h"

namespace jouleprof::spans {

// Each thread has a ring of its own, allocated at its first window. A thread that fills its ring
// before drain() empties it calls the consumer itself, under the inbox's lock. A window is lost
// only where memory cannot be allocated for its ring or by the consumer, and is then counted.
// Thread safety: all functions from any thread. In a forked child an inbox takes no windows and no
// locks.
class WindowInbox {
 public:
  struct Origin {
    pid_t thread = 0;                   // the kernel's id
    std::optional<std::uint32_t> ring;  // its number in the shared rings
  };
  // Called for one window after the other, never from two threads at once.
  using Consumer = std::function<void(const Origin&, const WindowRecord&)>;

  // `shared`: rings that outlive the process, used where they can be made; `open`: where windows
  // are listed while they are open. Each may be null, and outlives this.
  explicit WindowInbox(Consumer consumer, SharedRings* shared = nullptr,
                       OpenWindows* open = nullptr);
  WindowInbox(const WindowInbox&) = delete;
  WindowInbox& operator=(const WindowInbox&) = delete;
  ~WindowInbox();

  // One has begun, and is listed until it is forgotten.
  void begin(const OpenWindow& window) noexcept;
  void forget(const OpenWindow& window) noexcept;
  // Allocates nothing after a thread's first window, unless its ring is full.
  void push(const WindowRecord& record) noexcept;
  void drain();
  std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  struct ThreadRing {
    Origin origin;
    std::atomic<bool> left{false};    // its thread has ended
    std::atomic<bool> closed{false};  // its inbox was destroyed
    std::shared_ptr<RingSlot> slot;
  };
  struct ThreadRings;  // a thread's own, of all inboxes

  void push_throwing(const WindowRecord& record);
  ThreadRing* find_ring();
  ThreadRing* make_ring();
  bool in_other_process() const noexcept;
  void drain(ThreadRing& ring);

  static thread_local ThreadRings thread_rings_;

  const std::uint64_t id_;  // never used again, unlike an address
  const pid_t pid_;
  const Consumer consumer_;
  SharedRings* const shared_;
  OpenWindows* const open_;
  std::uint64_t forks_ = 0;
  std::atomic<std::uint64_t> lost_{0};
  std::mutex mutex_;  // guards what follows, and the consumer
  std::vector<std::shared_ptr<ThreadRing>> rings_;
};

}  // namespace jouleprof::spans
