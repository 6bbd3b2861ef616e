// How windows leave the threads that end them: rings, also in memory that outlives the process, and
// the inbox that collects from them.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/file.h"
#include "model/recording.h"

namespace jouleprof::spans {

using model::WindowRecord;

// A queue of windows from the one thread that ends them to the one that collects them.
// Thread safety: one thread pushes, one at a time drains; neither waits for the other.
class WindowRing {
 public:
  static constexpr std::size_t kCapacity = 4096;

  // False when it is full: nothing was pushed.
  bool push(const WindowRecord& record) noexcept {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head - seen_tail_ == kCapacity) {
      seen_tail_ = tail_.load(std::memory_order_acquire);
      if (head - seen_tail_ == kCapacity) return false;
    }
    records_[head % kCapacity] = record;
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // How many were pushed in all, and the record with that number, of the last kCapacity.
  std::size_t pushed() const { return head_.load(std::memory_order_acquire); }
  const WindowRecord& at(std::size_t number) const { return records_[number % kCapacity]; }

  // Gives all records to `take`, one at a time, oldest first. One that `take` throws at stays, and
  // all after it.
  template <typename Take>
  void drain(Take&& take) {
    const std::size_t head = head_.load(std::memory_order_acquire);
    std::size_t tail = tail_.load(std::memory_order_relaxed);
    while (tail != head) {
      take(records_[tail % kCapacity]);
      tail_.store(++tail, std::memory_order_release);
    }
  }

 private:
  alignas(64) std::atomic<std::size_t> head_{0};
  std::size_t seen_tail_ = 0;  // the pushing thread's
  alignas(64) std::atomic<std::size_t> tail_{0};
  std::array<WindowRecord, kCapacity> records_;
};

// --- Windows that have begun and not ended, in memory that may outlive the process ---

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

// --- Rings of windows in memory that outlives the process, for the tool with its descriptor ---

// One thread's ring in the file; never used for another thread.
struct RingSlot {
  std::int64_t thread = 0;  // the kernel's id
  WindowRing ring;
};

// An anonymous file (memfd_create) with the windows that are open, and one slot for each thread
// that ended a window. Thread safety: none, but for open()'s.
class SharedRings {
 public:
  static constexpr std::size_t kMost = 1024;  // threads
  static constexpr const char* kName = "jouleprof-windows";

  SharedRings();
  SharedRings(const SharedRings&) = delete;
  SharedRings& operator=(const SharedRings&) = delete;
  ~SharedRings();  // slots stay mapped until their last owner is gone

  int fd() const { return file_.get(); }       // -1: none can be made
  OpenWindows* open() const { return open_; }  // null where there is no memory for them

  struct Made {
    std::shared_ptr<RingSlot> slot;  // null where there is no more memory
    std::uint32_t number = 0;
  };
  Made make(pid_t thread) noexcept;

 private:
  OwnDescriptor file_;
  OpenWindows* open_ = nullptr;
  std::uint32_t made_ = 0;
};

// What a process left in its rings. `received(number)`: how many windows of that ring have arrived.
// Calls take(thread, window) for each later one, oldest first. Returns how many were overwritten.
// The process may have died at any instruction, still run, or have cut the file.
std::uint64_t read_left(int fd, const std::function<std::uint64_t(std::uint32_t)>& received,
                        const std::function<void(pid_t, const WindowRecord&)>& take);

// The windows that a process left open. As above, of a process at any instruction.
struct LeftOpen {
  std::vector<OpenWindow> windows;
  bool closed = false;  // it had closed its monitor
};
LeftOpen read_left_open(int fd);

// Collects windows from all threads of a program; none of them waits.
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
