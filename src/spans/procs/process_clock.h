// The CPU time that the kernel counts for another process, without reading a file.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "base/clock.h"

namespace jouleprof::spans {

// Takes a tenth of the time that reading /proc/PID/stat takes, and counts nanoseconds instead of
// hundredths of a second. No right is needed (clock_getcpuclockid(3)).
// Thread safety: all functions from any thread.
class ProcessClock {
 public:
  // `root`: where proc is. Works only where the pids there are those of this process's namespace.
  explicit ProcessClock(const std::filesystem::path& root);

  // Of all threads, those that have ended included. Absent where there is no such process, and
  // where the clock does not work.
  std::optional<Duration> time(pid_t pid) const;

 private:
  bool works_ = false;
};

}  // namespace jouleprof::spans
