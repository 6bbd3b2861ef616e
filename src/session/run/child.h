// The measured command as a child process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "session/run/signals.h"

namespace jouleprof::session {

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

  Child(Child&& other) noexcept;
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
  Child(std::string program, pid_t pid, int go, int failure)
      : program_(std::move(program)), pid_(pid), go_(go), failure_(failure) {}
  std::string program_;
  pid_t pid_ = 0;
  int go_ = -1;
  int failure_ = -1;
  bool reaped_ = false;
};

}  // namespace jouleprof::session
