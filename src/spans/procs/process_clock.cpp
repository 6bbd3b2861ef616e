#include "spans/procs/process_clock.h"

#include <time.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <system_error>

namespace jouleprof::spans {

ProcessClock::ProcessClock(const std::filesystem::path& root) {
  std::error_code err;
  const auto self = std::filesystem::read_symlink(root / "proc/self", err);
  works_ = !err && root == "/" && self.string() == std::to_string(getpid());
}

std::optional<Duration> ProcessClock::time(pid_t pid) const {
  clockid_t clock{};
  timespec time{};
  if (!works_ || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) {
    return std::nullopt;
  }
  return std::chrono::seconds{time.tv_sec} + Duration{time.tv_nsec};
}

}  // namespace jouleprof::spans
