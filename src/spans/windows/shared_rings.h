// Rings of windows in memory that outlives the process, for the tool that has its descriptor.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "spans/windows/open_windows.h"
#include "spans/windows/window_ring.h"

namespace jouleprof::spans {

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

  SharedRings();
  SharedRings(const SharedRings&) = delete;
  SharedRings& operator=(const SharedRings&) = delete;
  ~SharedRings();  // slots stay mapped until their last owner is gone

  int fd() const { return fd_; }               // -1: none can be made
  OpenWindows* open() const { return open_; }  // null where there is no memory for them

  struct Made {
    std::shared_ptr<RingSlot> slot;  // null where there is no more memory
    std::uint32_t number = 0;
  };
  Made make(pid_t thread) noexcept;

 private:
  int fd_ = -1;
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

}  // namespace jouleprof::spans
