// The status of a process that has ended, as waitpid() gives it.
#pragma once

#include <sys/wait.h>

namespace jouleprof {

// As a shell says it: 128 + N for a process that signal N ended.
inline int exit_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace jouleprof
