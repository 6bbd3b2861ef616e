#include "base/process/last_resort.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>

#include "base/say.h"

namespace jouleprof::last_resort {
namespace {

constexpr int kUnknown = -1;
constexpr std::array kPassedOn{SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};
constexpr std::array kCrashes{SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
constexpr unsigned kReapSeconds = 5;  // another thread has waited for the command, and will end us

std::atomic<int> plain_status{1};
std::atomic<char* const*> command{nullptr};
std::atomic<pid_t> child{0};
std::atomic<const char*> waiter{nullptr};
std::atomic<int> child_status{kUnknown};
std::atomic<bool> is_giving_up{false};
sigset_t signals_at_begin{};  // that were blocked

void pass_on(int signal) {
  const int err = errno;
  ::kill(child, signal);
  errno = err;
}

std::optional<int> wait() {
  int status = 0;
  pid_t found = 0;
  do {
    found = ::waitpid(child, &status, 0);
  } while (found < 0 && errno == EINTR);
  if (found < 0) return std::nullopt;
  return exit_status(status);
}

void become_waiter() {
  if (waiter == nullptr) return;
  char name[] = "jouleprof";
  char word[32] = "";
  char number[16] = "";
  std::snprintf(word, sizeof word, "%s", waiter.load());
  std::snprintf(number, sizeof number, "%d", static_cast<int>(child));
  char* const words[] = {name, word, number, nullptr};
  ::execv("/proc/self/exe", words);
}

int status_of_child() {
  if (const auto status = wait()) return *status;
  for (unsigned left = kReapSeconds; left > 0 && child_status == kUnknown;) left = ::sleep(left);
  return child_status != kUnknown ? child_status.load() : plain_status.load();
}

[[noreturn]] void give_up() {
  is_giving_up = true;  // from here on no other thread reaps the child
  if (child_status != kUnknown) {
    say("jouleprof: out of memory, or an internal error; there is no summary\n");
    ::_exit(child_status);
  }
  if (child != 0) {
    say("jouleprof: out of memory, or an internal error; the command goes on unmeasured\n");
    become_waiter();
    ::_exit(status_of_child());
  }
  if (char* const* words = command; words != nullptr) {
    say("jouleprof: out of memory, or an internal error; the command runs without being "
        "measured\n");
    ::sigprocmask(SIG_SETMASK, &signals_at_begin, nullptr);  // a thread blocks more
    ::execvp(words[0], words);
    ::_exit(errno == ENOENT ? 127 : 126);
  }
  say("jouleprof: out of memory, or an internal error\n");
  ::_exit(plain_status);
}

void give_up_at(int /*signal*/) { give_up(); }

}  // namespace

void install(int status, const char* wait_word) {
  plain_status = status;
  waiter = wait_word;
  ::sigprocmask(SIG_SETMASK, nullptr, &signals_at_begin);
  std::set_terminate(give_up);
  for (const int crash : kCrashes) {
    struct sigaction action {};
    ::sigaction(crash, nullptr, &action);
    if (action.sa_handler != SIG_DFL) continue;  // a sanitizer's
    action.sa_handler = give_up_at;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    ::sigaction(crash, &action, nullptr);
  }
}

int wait_for(pid_t pid) {
  child = pid;
  for (const int number : kPassedOn) std::signal(number, pass_on);
  for (const int number : {SIGINT, SIGQUIT})
    std::signal(number, SIG_IGN);  // the terminal's, sent to both
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  return wait().value_or(plain_status);
}

void has_to_run(char* const* words) { command = words; }

void has_started(pid_t pid) {
  if (command != nullptr) child = pid;
}

void has_ended(int status) {
  if (command == nullptr) return;
  child_status = status;
  while (is_giving_up) ::pause();
}

}  // namespace jouleprof::last_resort

namespace jouleprof {

std::string failure_text(int exit_status) {
  const auto signal = signal_in(exit_status);
  if (!signal) return fmt::format("failed with status {}", exit_status);
  return *signal == SIGINT ? "was interrupted" : fmt::format("was ended by signal {}", *signal);
}

}  // namespace jouleprof
