#include "apps/cli/measure/command_status.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>

#include "apps/cli/terminal/exit_status.h"
#include "base/file.h"
#include "base/say.h"

namespace jouleprof::cli {
namespace {

// A signal handler reaches nothing but globals.
volatile std::sig_atomic_t kept = 0;
volatile std::sig_atomic_t interruptions = 0;

void end_at_second(int) {
  if (interruptions != 0) ::_exit(kept);
  interruptions = 1;
}

}  // namespace

int run_unmeasured(const std::vector<std::string>& command, const Error& why) {
  say("jouleprof: {}; the command runs without being measured\n", why.message);
  std::vector<char*> words;
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  const int err = errno;
  return complain(system_error(fmt::format("cannot run '{}'", command.front()), err),
                  err == ENOENT ? 127 : 126);
}

KeepStatus::KeepStatus(int status) {
  kept = status;
  interruptions = 0;
  struct sigaction action {};
  action.sa_handler = end_at_second;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &before_[i]);
    // nohup
    if (before_[i].sa_handler == SIG_IGN) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
}

KeepStatus::~KeepStatus() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

}  // namespace jouleprof::cli
