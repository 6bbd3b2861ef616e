// Talk on stderr: best effort. A stderr that is closed, full or hung up never stops anything.
#pragma once

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <string_view>
#include <utility>

namespace jouleprof {

// While it lives, a write of this thread raises no signal: neither SIGPIPE for a broken pipe, nor
// SIGTTOU, with which a terminal of `stty tostop` stops the whole process group, the command, too.
class NoWriteSignals {
 public:
  NoWriteSignals() noexcept {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigset_t blocked = pipe_;
    sigaddset(&blocked, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  NoWriteSignals(const NoWriteSignals&) = delete;
  NoWriteSignals& operator=(const NoWriteSignals&) = delete;
  ~NoWriteSignals() {
    constexpr timespec kNow{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &kNow) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

// Writes what can be written. Raises no signal, throws nothing.
inline void say(std::string_view text) noexcept {
  constexpr int kPatienceMilliseconds = 1000;  // with a reader of a stderr that does not block
  const int saved = errno;
  {
    const NoWriteSignals quiet;
    while (!text.empty()) {
      const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
      if (n > 0) {
        text.remove_prefix(static_cast<std::size_t>(n));
        continue;
      }
      if (n < 0 && errno == EINTR) continue;
      pollfd reader{STDERR_FILENO, POLLOUT, 0};
      if (n < 0 && errno == EAGAIN && ::poll(&reader, 1, kPatienceMilliseconds) == 1) continue;
      break;
    }
  }
  errno = saved;
}

template <typename First, typename... Rest>
void say(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) noexcept {
  try {
    say(std::string_view(
        fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...)));
  } catch (...) {  // no memory for a message
    say("jouleprof: out of memory\n");
  }
}

}  // namespace jouleprof
