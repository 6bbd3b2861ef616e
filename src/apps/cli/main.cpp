#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "apps/cli/cli.h"

namespace {

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

// A file that reaches the size limit (ulimit -f) is an error of that file. A handler, because
// commands would inherit that a signal is ignored.
void survive_file_size_limit() {
  struct sigaction before {};
  ::sigaction(SIGXFSZ, nullptr, &before);
  if (before.sa_handler != SIG_DFL) return;
  struct sigaction action {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  occupy_closed_streams();
  survive_file_size_limit();
  return jouleprof::cli::main(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
