#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/process/last_resort.h"

namespace {

constexpr const char* kWaitWord = "wait-for-command";  // a word of the tool's own, not a verb

// A stream that is closed must not become a file of ours. What is written to such a stream fails,
// and a command finds it closed.
void occupy_closed_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is this one.
    const int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    (void)::open("/dev/null", mode | O_CLOEXEC);
  }
}

// A file that reaches the size limit (ulimit -f), or a reader that has enough (head), is an error
// of that write. A handler, because commands would inherit that a signal is ignored.
void survive_failed_writes() {
  for (const int number : {SIGXFSZ, SIGPIPE}) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = SA_RESTART;
    ::sigaction(number, &action, nullptr);
  }
}

// Before anything that could ask for memory. The C library passes main()'s arguments.
__attribute__((constructor(101))) void keep_commands(int argc, char** argv, char**) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == kWaitWord && argc == 3) ::_exit(jouleprof::last_resort::wait_for(std::atoi(argv[2])));
  const bool has_command = verb == "run" || verb == "apply";
  jouleprof::last_resort::install(
      has_command ? jouleprof::cli::kNotStarted : jouleprof::cli::kInternalError, kWaitWord);
  if (verb != "run") return;  // `apply` must not run it at other settings
  if (argc > 2 && argv[2][0] != '-') return jouleprof::last_resort::has_to_run(argv + 2);
  // Which words after options are their values is not known here. Two words in a row have begun a
  // command, whose "--" is its own.
  bool was_option = true;
  for (int i = 2; i + 1 < argc; ++i) {
    if (argv[i] == std::string_view("--")) return jouleprof::last_resort::has_to_run(argv + i + 1);
    const bool is_option = argv[i][0] == '-';
    if (!is_option && !was_option) return;
    was_option = is_option;
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_closed_streams();
  survive_failed_writes();
  return jouleprof::cli::main(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
