// The measured processes: a command as a child of this one, and others that are followed.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/process/descriptor.h"
#include "base/result.h"
#include "session/run/signals.h"
#include "session/sampling/visible_devices.h"

namespace jouleprof::session {

// Lets this process open as many files as the system allows. Commands have the limit that it was
// given.
void raise_file_limit();

// Why a command could not be started, and the status that shells give for it.
struct StartFailure {
  int exit_status = 127;  // 127: not found, 126: found but not executable
  Error error;
};

// A process that has been made but not yet become the command. Its standard streams, environment,
// process group, signal mask and dispositions are those the tool was given. If the tool dies
// beforehand it ends; afterwards it does not depend on the tool.
class Child {
 public:
  // `command`: a program (found through PATH as a shell does) and its arguments; not empty.
  // Errors: unavailable when there are no processes or descriptors left.
  // `variables`: each a "NAME=value", added to the tool's environment or replacing a value there.
  static Result<Child> prepare(const std::vector<std::string>& command, const SignalStream& signals,
                               const std::vector<std::string>& variables = {});

  Child(Child&& other) noexcept = default;
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  ~Child();  // one that never became the command is ended and reaped

  pid_t pid() const { return pid_; }

  // Lets it become the command. A failure to do so is reported exactly; it has been reaped then.
  std::optional<StartFailure> release();

  // Whether it has ended. It stays readable in /proc until it is reaped.
  bool has_ended() const;

  // Waits for its end. Returns its exit status as a shell shows it: 128 + N after signal N.
  int reap();

  // Passes a signal on.
  void send(int signal) const;

 private:
  void wait();
  Child(std::string program, pid_t pid, Descriptor go, Descriptor failure)
      : program_(std::move(program)), pid_(pid), go_(std::move(go)), failure_(std::move(failure)) {}
  std::string program_;
  pid_t pid_ = 0;
  Descriptor go_;  // none: it has become the command
  Descriptor failure_;
  bool reaped_ = false;
};

// --- Running processes that a session follows without having started them ---

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

  int fd() const {
    return epoll_.get();
  }                   // readable when one has ended; -1: it cannot be waited for
  bool have_ended();  // all of them

 private:
  struct Process {
    pid_t pid = 0;
    Descriptor fd;  // none before Linux 5.3
  };
  bool has_ended(const Process& process) const;

  Descriptor epoll_;
  std::vector<Process> alive_;
};

}  // namespace jouleprof::session
