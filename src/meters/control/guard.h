// A process of its own that restores settings when their owner dies.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace jouleprof::meters::control {

struct GuardOptions {
  // The program that calls run_guard with the words that are appended: FD FOLDER UUID...
  std::vector<std::string> program;
  std::filesystem::path folder;
  std::vector<std::string> uuids;
  std::vector<int> lock_fds;  // kept open, so that the boards stay locked until it ends
};

// The owner's side. The guard is in a session of its own, is no child of the owner, and ignores the
// signals of terminals and of service managers.
class Guard {
 public:
  // Returns once the guard watches. Errors: unavailable when it does not start within 10 s.
  static Result<std::unique_ptr<Guard>> start(const GuardOptions& options);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  // The guard restores what is left, and ends; returns when it has, and at the latest after 2 s:
  // until then the boards are locked.
  ~Guard();

  pid_t pid() const { return pid_; }
  int fd() const { return fd_; }  // it hangs up when the guard dies

 private:
  Guard(int fd, pid_t pid) : fd_(fd), pid_(pid), owner_(::getpid()) {}
  int fd_;
  pid_t pid_;
  pid_t owner_;  // its forks share the socket, and end nothing
};

// The guard's side: watches `fd` until its owner ends, then restores what is recorded of these
// boards. Returns the exit status.
int run_guard(int fd, const std::filesystem::path& folder, const std::vector<std::string>& uuids,
              const std::string& library);

}  // namespace jouleprof::meters::control
