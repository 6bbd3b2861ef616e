#include "apps/cli/measure/run_command.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <thread>

#include "apps/cli/terminal/output.h"
#include "apps/cli/terminal/terminal.h"
#include "base/file.h"
#include "base/say.h"
#include "session/run/trace_watch.h"

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

namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 60s;
constexpr Duration kLookAgain = 50ms;
constexpr Duration kPatienceWithNext = 20s;  // to open its meters and its file

}  // namespace

JobPlace find_job_place() {
  JobPlace place;
  const std::string key = session::job_key();
  if (key.empty()) return place;
  const auto folder = session::recorder_folder();
  const auto alone = [&](const std::string& why) {
    say("jouleprof: {}: this process records by itself. Its file and those of the job's "
        "other processes have the same devices; `jouleprof merge` counts them once\n",
        why);
  };
  for (const HostTime last = HostClock::now() + kPatience; HostClock::now() < last;
       std::this_thread::sleep_for(kLookAgain)) {
    auto lock = session::RecorderLock::take(folder, key);
    if (!lock) {
      alone(lock.error().message);
      return place;
    }
    if (*lock) {
      place.lock.emplace(std::move(**lock));
      return place;
    }
    const auto socket = session::RecorderLock::socket(folder, key);
    if (socket.empty()) continue;
    auto membership = session::join_recorder(socket);
    if (membership) {
      place.membership = std::move(*membership);
      return place;
    }
    if (membership.error().code == Errc::kUnsupported) {
      alone(membership.error().message);
      return place;
    }
  }
  alone("the recorder of this job on this host did not answer");
  return place;
}

JobPlace find_next_place(pid_t command) {
  JobPlace place;
  const std::string key = session::job_key();
  const auto folder = session::recorder_folder();
  for (const HostTime last = HostClock::now() + kPatienceWithNext; HostClock::now() < last;
       std::this_thread::sleep_for(kLookAgain)) {
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(command), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        ended.si_pid != 0) {
      break;
    }
    auto lock = session::RecorderLock::take(folder, key);
    if (!lock) break;
    if (*lock) {
      place.lock.emplace(std::move(**lock));
      break;
    }
    const auto socket = session::RecorderLock::socket(folder, key);
    if (socket.empty()) continue;
    if (auto membership = session::join_recorder(socket)) {
      place.membership = std::move(*membership);
      break;
    }
  }
  return place;
}

int run_as_member(const std::vector<std::string>& command, session::Membership membership,
                  bool traced, bool quiet, const session::Succeed& succeed) {
  const pid_t recorder = membership.recorder;
  const std::string file = membership.recording;
  const std::string prefix = fmt::format("{}=", session::kTraceVariable);
  const bool is_traced =
      std::any_of(membership.variables.begin(), membership.variables.end(),
                  [&](const auto& variable) { return variable.starts_with(prefix); });
  if (!quiet) {
    say("jouleprof: recorded by process {} of this job{}\n", recorder,
        file.empty() ? "" : ", in " + file);
  }
  if (traced && !is_traced) {
    say("jouleprof: kernels are not traced: the recorder of this job was started without "
        "--kernels or --layers; give all processes the same options\n");
  }
  const auto result = session::run_joined(command, std::move(membership), succeed);
  if (!result) return complain(result.error(), kNotStarted);
  if (result->start_error) return complain(*result->start_error, result->exit_status);
  if (!result->was_recorded) {
    say("jouleprof: the recorder, process {}, ended before this command: what this command "
        "used from then on is in no file{}\n",
        recorder, file.empty() ? "" : "; what came before is in " + file);
  }
  return result->exit_status;
}

}  // namespace jouleprof::cli
