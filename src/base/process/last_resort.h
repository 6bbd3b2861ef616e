// What becomes of the measured command when this program cannot go on: no memory is left, an
// exception is not caught, or a driver's library crashes. The command runs nevertheless, and its
// exit status comes back.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <optional>
#include <string>

namespace jouleprof::last_resort {

// From now on std::terminate() says so on stderr and ends the program with `status`, not with a
// signal; likewise the signals of a crash (SIGSEGV and the like), unless they are handled already.
// Before that it runs the command, or waits for it, as far as the calls below have announced one.
// It waits as a new program that asks for no memory and has no other threads: this one, called with
// `wait_word` and the number of the child, which has to call wait_for() then. Null: it waits as it
// is.
void install(int status, const char* wait_word);
// Waits for this child and passes on the signals that ask it to end. Returns its exit status.
int wait_for(pid_t child);

// `command`: a program and its arguments, which must stay where they are; ends with a null pointer.
// It takes this process's place.
void has_to_run(char* const* command);
// It runs as this child: its exit status is the program's. Nothing where no command has to run, as
// in a sweep, whose commands are its own.
void has_started(pid_t child);
// It has ended with this exit status. Nothing likewise. To be called before it is reaped: a thread
// that cannot go on finds the status here or waits for the child itself. Where one does, this does
// not return.
void has_ended(int status);

}  // namespace jouleprof::last_resort

namespace jouleprof {

// --- The status of a process that has ended, as waitpid() and waitid() give it ---

// The exit status that a shell reports: 128 + N for a process that signal N ended.
inline int exit_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

inline int exit_status(const siginfo_t& ended) {
  return ended.si_code == CLD_EXITED ? ended.si_status : 128 + ended.si_status;
}

// The signal N in such a status; absent: it ended by itself.
inline std::optional<int> signal_in(int exit_status) {
  if (exit_status <= 128 || exit_status > 192) return std::nullopt;
  return exit_status - 128;
}

// How a command failed, by that status: "failed with status 1", "was interrupted" (Ctrl-C), "was
// ended by signal 9".
std::string failure_text(int exit_status);

}  // namespace jouleprof
