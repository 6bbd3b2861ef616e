// The status of a process that has ended, as waitpid() and waitid() give it.
#pragma once

#include <sys/wait.h>

namespace jouleprof {

// As a shell says it: 128 + N for a process that signal N ended.
inline int exit_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

inline int exit_status(const siginfo_t& ended) {
  return ended.si_code == CLD_EXITED ? ended.si_status : 128 + ended.si_status;
}

}  // namespace jouleprof
