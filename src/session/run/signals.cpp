#include "session/run/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "base/file.h"
#include "base/process/threads.h"

namespace jouleprof::session {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<int> pipe_write{-1};
std::atomic<int> pipe_read{-1};
std::atomic<std::uint64_t> came_sent{0};  // bit N: signal N
std::atomic<std::uint64_t> came_kernel{0};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

void wake_reader() noexcept {
  const char byte = 0;
  // A full pipe is readable already.
  [[maybe_unused]] const ssize_t n = ::write(pipe_write.load(), &byte, 1);
}

void handle(int number, siginfo_t* info, void*) {
  const int saved = errno;
  auto& set = info->si_code <= 0 ? came_sent : came_kernel;
  set.fetch_or(std::uint64_t{1} << number);
  wake_reader();
  errno = saved;
}

// Of the signals that would end this process.
sigset_t ending() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
  return set;
}

std::optional<sigset_t> mask_before;  // while there is a SignalsLater

struct sigaction catching() {
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  return action;
}

}  // namespace

Result<std::unique_ptr<SignalStream>> SignalStream::create() {
  if (pipe_write.load() >= 0) {
    return fail(Errc::kInternal, "two sessions at once in one process");
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return system_failure("cannot make a pipe for signals", errno);
  }
  pipe_read = ends[0];
  pipe_write = ends[1];
  came_sent = 0;
  came_kernel = 0;
  std::unique_ptr<SignalStream> stream(new SignalStream);
  const struct sigaction action = catching();
  for (std::size_t i = 0; i < kCaught.size(); ++i) {
    sigaction(kCaught[i], nullptr, &stream->before_[i]);
    // A process that ignores SIGCHLD does not get the exit status of its child.
    const bool ignored = stream->before_[i].sa_handler == SIG_IGN;
    stream->caught_[i] = !ignored || kCaught[i] == SIGCHLD;
    if (stream->caught_[i]) sigaction(kCaught[i], &action, nullptr);
  }
  if (mask_before) pthread_sigmask(SIG_SETMASK, &*mask_before, nullptr);
  return stream;
}

SignalStream::~SignalStream() {
  if (mask_before) {
    const sigset_t later = ending();
    pthread_sigmask(SIG_BLOCK, &later, nullptr);
  }
  restore();
  ::close(pipe_write.exchange(-1));
  ::close(pipe_read.exchange(-1));
}

void SignalStream::restore() const noexcept {
  for (std::size_t i = 0; i < kCaught.size(); ++i) {
    if (caught_[i]) sigaction(kCaught[i], &before_[i], nullptr);
  }
}

std::optional<Signal> SignalStream::next() {
  for (const int number : kCaught) {
    const std::uint64_t bit = std::uint64_t{1} << number;
    for (auto* set : {&came_sent, &came_kernel}) {
      if ((set->fetch_and(~bit) & bit) != 0 && number != SIGCHLD) {
        return Signal{number, set == &came_sent};
      }
    }
  }
  return std::nullopt;
}

void SignalStream::wait(HostTime deadline, int other_fd) {
  std::array<pollfd, 2> fds{{{pipe_read.load(), POLLIN, 0}, {other_fd, POLLIN, 0}}};
  ::poll(fds.data(), fds.size(), milliseconds_until(deadline));
  char bytes[256];
  while (::read(fds[0].fd, bytes, sizeof bytes) > 0) {
  }
}

void SignalStream::wake() noexcept { wake_reader(); }

void SignalStream::stop_self() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  struct sigaction ours {};
  sigaction(SIGTSTP, &standard, &ours);
  raise(SIGTSTP);  // and not SIGSTOP: the kernel ignores it where no process could continue us
  sigaction(SIGTSTP, &ours, nullptr);
}

SignalsLater::SignalsLater() {
  const sigset_t later = ending();
  pthread_sigmask(SIG_BLOCK, &later, &mask_before.emplace());
}

SignalsLater::~SignalsLater() {
  pthread_sigmask(SIG_SETMASK, &*mask_before, nullptr);
  mask_before.reset();
}

}  // namespace jouleprof::session
