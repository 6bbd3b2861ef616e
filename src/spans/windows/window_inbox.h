// Collects windows from all threads of a program without making any of them wait.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "spans/windows/window_ring.h"

namespace jouleprof::spans {

// Each thread has a ring of its own, made at its first window. A thread that fills its ring before
// anybody drains it hands its windows over itself, under the inbox's lock: none is lost.
// Thread safety: all functions from any thread. In a forked child an inbox takes nothing in and
// locks nothing.
class WindowInbox {
 public:
  // Called for one window after the other, never from two threads at once. `thread`: kernel's id.
  using Consumer = std::function<void(pid_t thread, const WindowRecord&)>;

  explicit WindowInbox(Consumer consumer);
  WindowInbox(const WindowInbox&) = delete;
  WindowInbox& operator=(const WindowInbox&) = delete;
  ~WindowInbox();

  void push(const WindowRecord& record) noexcept;
  void drain();

 private:
  struct ThreadRing {
    pid_t thread = 0;
    std::atomic<bool> left{false};    // its thread has ended
    std::atomic<bool> closed{false};  // its inbox is gone
    WindowRing ring;
  };
  struct ThreadRings;  // a thread's own, of all inboxes

  ThreadRing* find_ring() noexcept;
  bool in_other_process() const noexcept;
  void drain(ThreadRing& ring);

  static thread_local ThreadRings thread_rings_;

  const std::uint64_t id_;  // never used again, unlike an address
  const pid_t pid_;
  const Consumer consumer_;
  std::mutex mutex_;  // guards what follows, and the consumer
  std::vector<std::shared_ptr<ThreadRing>> rings_;
};

}  // namespace jouleprof::spans
