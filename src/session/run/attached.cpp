#include "session/run/attached.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "spans/procs/procfs.h"

namespace jouleprof::session {
namespace {

constexpr int kMostGenerations =
    10'000;  // pids that are reused while they are read may form a ring

Result<void> check_attachable(pid_t pid) {
  if (pid <= 0) return fail(Errc::kInvalidArgument, fmt::format("{} is no process id", pid));
  if (::kill(pid, 0) == 0) return {};
  if (errno == EPERM) {
    return fail(Errc::kPermissionDenied,
                fmt::format("process {} is another user's: run as that user, or as root", pid));
  }
  return fail(Errc::kNotFound, fmt::format("there is no process {}", pid));
}

}  // namespace

Result<void> check_attachable(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    if (auto possible = check_attachable(pid); !possible) return possible;
  }
  return {};
}

std::vector<pid_t> topmost(const std::vector<pid_t>& pids, const std::filesystem::path& root) {
  spans::ProcFs procs(root);
  const auto is_named = [&](pid_t pid) {
    return std::find(pids.begin(), pids.end(), pid) != pids.end();
  };
  const auto descends = [&](pid_t pid) {
    for (int i = 0; i < kMostGenerations; ++i) {
      const auto stat = procs.stat(pid);
      if (!stat || stat->parent <= 0) return false;
      pid = stat->parent;
      if (is_named(pid)) return true;
    }
    return false;
  };
  std::vector<pid_t> out;
  for (const pid_t pid : pids) {
    if (std::find(out.begin(), out.end(), pid) == out.end() && !descends(pid)) out.push_back(pid);
  }
  return out;
}

Environment environment_of(pid_t pid, const std::filesystem::path& root) {
  const auto text = read_file(root / fmt::format("proc/{}/environ", pid));
  return [text = text.value_or("")](const std::string& name) -> std::optional<std::string> {
    for (const auto entry : split(text, '\0')) {
      if (entry.starts_with(name + "=")) return std::string(entry.substr(name.size() + 1));
    }
    return std::nullopt;
  };
}

EndWatch::EndWatch(const std::vector<pid_t>& pids) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  bool complete = epoll_ >= 0;
  for (const pid_t pid : pids) {
    const Process process{pid, static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
    epoll_event event{};
    event.events = EPOLLIN;
    complete =
        complete && process.fd >= 0 && ::epoll_ctl(epoll_, EPOLL_CTL_ADD, process.fd, &event) == 0;
    alive_.push_back(process);
  }
  if (complete || epoll_ < 0) return;
  ::close(epoll_);
  epoll_ = -1;
}

EndWatch::~EndWatch() {
  for (const Process& process : alive_) {
    if (process.fd >= 0) ::close(process.fd);
  }
  if (epoll_ >= 0) ::close(epoll_);
}

bool EndWatch::has_ended(const Process& process) const {
  if (process.fd < 0) return ::kill(process.pid, 0) != 0 && errno == ESRCH;
  pollfd poll{process.fd, POLLIN, 0};
  return ::poll(&poll, 1, 0) == 1;
}

bool EndWatch::have_ended() {
  // Closing also takes it out of the set that is waited for: it would stay readable.
  std::erase_if(alive_, [this](const Process& process) {
    if (!has_ended(process)) return false;
    if (process.fd >= 0) ::close(process.fd);
    return true;
  });
  return alive_.empty();
}

}  // namespace jouleprof::session
