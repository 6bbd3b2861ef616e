// Files of one process in /proc that stay open between reads: opening them costs more than reading.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "spans/procs/procfs.h"

namespace jouleprof::spans {

// `folder` is /proc, open. A file of a process that ended cannot be read, even if its pid was given
// out again; it is then opened anew.
// Thread safety: none.
class ProcessFiles {
 public:
  static constexpr std::size_t kFiles = 2;  // that may be open

  ProcessFiles() = default;
  ProcessFiles(ProcessFiles&& other) noexcept;
  ProcessFiles& operator=(ProcessFiles&& other) noexcept;
  ~ProcessFiles() { close(); }

  // Absent: there is no such process, or its status cannot be read.
  std::optional<ProcessStat> stat(int folder, pid_t pid);

  // Nanoseconds that its main thread has run (/proc/PID/schedstat), at a sixth of the cost of
  // stat(). Absent where the kernel does not count them (CONFIG_SCHED_INFO), and where the process
  // that was read last has ended.
  std::optional<std::uint64_t> main_thread_time(int folder, pid_t pid);

  void close();

 private:
  int stat_ = -1;
  int run_time_ = -1;
};

}  // namespace jouleprof::spans
