#include "meters/control/guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "base/say.h"
#include "meters/control/restore.h"

namespace jouleprof::meters::control {
namespace {

constexpr int kPatienceMs = 10'000;
constexpr int kEndMs = 2'000;
constexpr std::array kIgnored{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTOU, SIGTTIN, SIGPIPE};

void keep_over_exec(int fd) { ::fcntl(fd, F_SETFD, 0); }

// In the child of a fork: only what is safe there.
[[noreturn]] void become_guard(char* const* words, int fd, const std::vector<int>& lock_fds) {
  ::setsid();
  if (::fork() != 0) ::_exit(0);  // init adopts the guard and collects its status
  for (const int signal : kIgnored) ::signal(signal, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  keep_over_exec(fd);
  for (const int lock : lock_fds) keep_over_exec(lock);
  const int null = ::open("/dev/null", O_RDWR);
  if (null >= 0) {
    ::dup2(null, 0);
    ::dup2(null, 1);
  }
  ::execv(words[0], words);
  ::_exit(127);
}

// The guard's process id, which it sends when it is ready.
Result<pid_t> wait_until_ready(int fd) {
  pollfd poll{fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&poll, 1, kPatienceMs);
  } while (ready < 0 && errno == EINTR);
  pid_t pid = 0;
  if (ready == 1 && ::read(fd, &pid, sizeof pid) == static_cast<ssize_t>(sizeof pid)) return pid;
  return fail(Errc::kUnavailable,
              "the process that restores the GPU's settings did not start; nothing was changed");
}

// Returns when the owner has closed its end or died.
void wait_for_end(int fd) {
  char byte = 0;
  for (;;) {
    const auto got = ::read(fd, &byte, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) return;
  }
}

}  // namespace

Result<std::unique_ptr<Guard>> Guard::start(const GuardOptions& options) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return tl::unexpected(system_error("cannot make a socket", errno));
  }
  std::vector<std::string> texts = options.program;
  texts.push_back(fmt::format("{}", ends[1]));
  texts.push_back(options.folder.string());
  texts.insert(texts.end(), options.uuids.begin(), options.uuids.end());
  std::vector<char*> words;
  for (auto& text : texts) words.push_back(text.data());
  words.push_back(nullptr);

  const pid_t child = ::fork();
  if (child == 0) become_guard(words.data(), ends[1], options.lock_fds);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return tl::unexpected(system_error("cannot start a process", errno));
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  const auto pid = wait_until_ready(ends[0]);
  if (!pid) {
    ::close(ends[0]);
    return forward_error(pid);
  }
  return std::unique_ptr<Guard>(new Guard(ends[0], *pid));
}

Guard::~Guard() {
  if (::getpid() == owner_) {
    ::shutdown(fd_, SHUT_WR);
    pollfd end{fd_, POLLIN, 0};
    while (::poll(&end, 1, kEndMs) < 0 && errno == EINTR) {
    }
  }
  ::close(fd_);
}

int run_guard(int fd, const std::filesystem::path& folder, const std::vector<std::string>& uuids,
              const std::string& library) {
  // The driver is opened now: after the owner's death it might forget a limit without a client.
  const auto nvml = NvmlSession::open(library);
  if (!nvml) return 1;
  const auto boards = nvml->boards(uuids);
  if (!boards) return 1;
  const pid_t self = ::getpid();
  if (::send(fd, &self, sizeof self, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof self)) return 1;
  wait_for_end(fd);
  int status = 0;
  for (const auto& board : *boards) {
    auto record = load(record_path(folder, board.uuid()));
    if (!record) continue;  // its owner has restored it
    const auto restored = restore(board, *record, folder);
    if (restored) {
      say("jouleprof: {}\n", describe(*record, *restored));
    } else {
      say("jouleprof: {}: the {} could not be restored: {}. Run as root: jouleprof restore\n",
          record->device, name_of(record->knob), restored.error().message);
      status = 1;
    }
  }
  return status;
}

}  // namespace jouleprof::meters::control
