// Running processes that a session follows without having started them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "base/result.h"
#include "session/sampling/visible_devices.h"

namespace jouleprof::session {

// Errors: invalid_argument, not_found or permission_denied, for the first that cannot be followed.
Result<void> check_attachable(const std::vector<pid_t>& pids);

// Without repetitions and without those that descend from another one: the trees of the rest
// contain them. In the order given.
std::vector<pid_t> topmost(const std::vector<pid_t>& pids, const std::filesystem::path& root);

// The environment that a running process was started with.
Environment environment_of(pid_t pid, const std::filesystem::path& root);

// Observes processes that are not our children until the last of them has ended.
// Thread safety: none.
class EndWatch {
 public:
  explicit EndWatch(const std::vector<pid_t>& pids);
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;
  ~EndWatch();

  int fd() const { return epoll_; }  // readable when one has ended; -1: it cannot be waited for
  bool have_ended();                 // all of them

 private:
  struct Process {
    pid_t pid = 0;
    int fd = -1;  // -1 before Linux 5.3
  };
  bool has_ended(const Process& process) const;

  int epoll_ = -1;
  std::vector<Process> alive_;
};

}  // namespace jouleprof::session
