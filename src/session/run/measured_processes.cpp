#include "session/run/measured_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/file.h"
#include "base/process/last_resort.h"
#include "base/text.h"
#include "spans/procs/procfs.h"

namespace jouleprof::session {
namespace {

std::optional<rlimit> given_files;  // to this process, which then allowed itself more

// After fork() in a process with threads: async-signal-safe calls only.
[[noreturn]] void become(char* const* argv, char* const* environment, int go, int failure) {
  char byte = 0;
  ssize_t n = 0;
  do {
    n = ::read(go, &byte, 1);
  } while (n < 0 && errno == EINTR);
  if (n == 1) {
    ::execvpe(argv[0], argv, environment);
    const int err = errno;
    [[maybe_unused]] const ssize_t reported = ::write(failure, &err, sizeof err);
  }
  ::_exit(127);
}

// This process's own, with each "NAME=value" in place of whatever NAME is there.
std::vector<char*> environment_with(const std::vector<std::string>& variables) {
  std::vector<char*> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const bool replaced = std::ranges::any_of(variables, [&](const auto& v) {
      return std::string_view(*entry).starts_with(v.substr(0, v.find('=') + 1));
    });
    if (!replaced) all.push_back(*entry);
  }
  for (const auto& variable : variables) all.push_back(const_cast<char*>(variable.c_str()));
  all.push_back(nullptr);
  return all;
}

// Whether a program of this name can be seen at all, executable or not.
bool exists(const std::string& program) {
  if (program.empty()) return false;
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), F_OK) == 0;
  const char* path = std::getenv("PATH");
  for (const auto folder : split(path != nullptr ? path : "/bin:/usr/bin", ':')) {
    const std::string file = fmt::format("{}/{}", folder.empty() ? "." : folder, program);
    if (::access(file.c_str(), F_OK) == 0) return true;
  }
  return false;
}

StartFailure start_failure(const std::string& program, int err) {
  const std::string what = fmt::format("cannot run '{}'", program);
  const bool is_path = program.find('/') != std::string::npos;
  const bool found = exists(program);
  // execvp() says EACCES as well when a folder of PATH may not be searched.
  if (!is_path && !found) {
    return {127, {Errc::kNotFound, fmt::format("{}: no such program in PATH", what)}};
  }
  if (err == ENOENT && found) {
    return {126,
            {Errc::kNotFound,
             fmt::format("{}: the interpreter that its first line or header names does not exist",
                         what)}};
  }
  return {err == ENOENT || err == ENOTDIR ? 127 : 126, system_error(what, err)};
}

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

void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  const rlimit given = limit;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) given_files = given;
}

Result<Child> Child::prepare(const std::vector<std::string>& command, const SignalStream& signals,
                             const std::vector<std::string>& variables) {
  Descriptor go;
  Descriptor go_of_child;
  Descriptor failure;
  Descriptor failure_of_child;
  // A socket, because writing to it can be kept from raising SIGPIPE should the child be killed.
  if (!make_socket_pair(go_of_child, go)) {
    return system_failure("cannot make a socket for the command", errno);
  }
  if (!make_pipe(failure, failure_of_child)) {
    return system_failure("cannot make a pipe for the command", errno);
  }
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const auto environment = environment_with(variables);

  // Until the child has the tool's own dispositions back, a signal must not reach our handlers
  // there.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  const int err = errno;
  if (pid == 0) {
    if (given_files) (void)::setrlimit(RLIMIT_NOFILE, &*given_files);
    signals.restore();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    go.close();
    become(argv.data(), environment.data(), go_of_child.get(), failure_of_child.get());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return system_failure("cannot start another process", err);
  return Child(command.front(), pid, std::move(go), std::move(failure));
}

Child::~Child() {
  if (!go_ || reaped_) return;
  go_.close();  // it never became the command, which has still to run
  wait();
}

std::optional<StartFailure> Child::release() {
  const char byte = 'g';
  last_resort::has_started(pid_);
  [[maybe_unused]] const ssize_t reported = ::send(go_.get(), &byte, 1, MSG_NOSIGNAL);
  go_.close();
  // A successful exec closes the other end without a word.
  int err = 0;
  ssize_t n = 0;
  do {
    n = ::read(failure_.get(), &err, sizeof err);
  } while (n < 0 && errno == EINTR);
  failure_.close();
  if (n != sizeof err) return std::nullopt;
  reap();
  return start_failure(program_, err);
}

bool Child::has_ended() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

int Child::reap() {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  const int code = exit_status(info);
  last_resort::has_ended(code);
  wait();
  return code;
}

void Child::wait() {
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
}

void Child::send(int signal) const {
  if (!reaped_) ::kill(pid_, signal);
}

Result<void> check_attachable(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    if (auto possible = check_attachable(pid); !possible) return possible;
  }
  return {};
}

std::vector<pid_t> topmost(const std::vector<pid_t>& pids, const std::filesystem::path& root) {
  spans::ProcFs procs(root);
  const auto is_named = [&](pid_t pid) { return std::ranges::find(pids, pid) != pids.end(); };
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
    if (std::ranges::find(out, pid) == out.end() && !descends(pid)) out.push_back(pid);
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
  bool complete = bool(epoll_);
  for (const pid_t pid : pids) {
    Process process{pid, Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)))};
    epoll_event event{};
    event.events = EPOLLIN;
    complete = complete && process.fd &&
               ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, process.fd.get(), &event) == 0;
    alive_.push_back(std::move(process));
  }
  if (!complete) epoll_.close();
}

bool EndWatch::has_ended(const Process& process) const {
  if (!process.fd) return ::kill(process.pid, 0) != 0 && errno == ESRCH;
  pollfd poll{process.fd.get(), POLLIN, 0};
  return ::poll(&poll, 1, 0) == 1;
}

bool EndWatch::have_ended() {
  // Closing also takes it out of the set that is waited for: it would stay readable.
  std::erase_if(alive_, [this](const Process& process) { return has_ended(process); });
  return alive_.empty();
}

}  // namespace jouleprof::session
