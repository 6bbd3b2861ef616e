// What keeps a command's status where something else goes wrong.
#pragma once

#include <signal.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "session/run/job_recorder.h"

namespace jouleprof::cli {

// Becomes the command, because the job matters more than its measurement. Returns only where that
// fails: the exit status.
int run_unmeasured(const std::vector<std::string>& command, const Error& why);

// After the command has ended: while one exists, an interruption ends the tool with the command's
// status. The first one does not: it is taken for a key that was held too long.
class KeepStatus {
 public:
  explicit KeepStatus(int status);
  KeepStatus(const KeepStatus&) = delete;
  KeepStatus& operator=(const KeepStatus&) = delete;
  ~KeepStatus();

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

// `jouleprof run` as one of the processes of a job on a host.

// What this process is: the job's recorder on this host, a member of its session, or alone.
struct JobPlace {
  std::optional<session::RecorderLock> lock;
  std::optional<session::Membership> membership;
};

// Waits up to a minute while the recorder starts. Where it cannot be joined, says so on stderr; the
// process is then alone.
JobPlace find_job_place();

// The same for the running command of a member whose recorder died: nothing is said, and the wait
// is short.
JobPlace find_next_place(pid_t command);

// Runs the command as a member. Returns the exit status. `traced`: the user asked for kernels or
// layers.
int run_as_member(const std::vector<std::string>& command, session::Membership membership,
                  bool traced, bool quiet, const session::Succeed& succeed);

}  // namespace jouleprof::cli
