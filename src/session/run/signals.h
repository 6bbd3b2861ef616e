// Signals as a stream that a loop can wait for.
#pragma once

#include <signal.h>

#include <array>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/result.h"

namespace jouleprof::session {

struct Signal {
  int number = 0;
  // Sent with kill() and the like. Otherwise it came from the terminal or the kernel, which gave it
  // to the whole foreground group: the measured command has it already.
  bool sent = false;
};

// While one exists, the signals it catches no longer do what they do by default. One that the tool
// was started with ignored (nohup, a shell's background job) stays ignored. Only one at a time in a
// process. Thread safety: wake() may be called from any thread; the rest from one.
class SignalStream {
 public:
  static constexpr std::array kCaught = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP, SIGUSR1,
                                         SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD};

  // Errors: internal when another one exists; unavailable when there are no descriptors left.
  static Result<std::unique_ptr<SignalStream>> create();
  SignalStream(const SignalStream&) = delete;
  SignalStream& operator=(const SignalStream&) = delete;
  ~SignalStream();  // puts everything back

  // The next one that came, if any. SIGCHLD and wake() only end a wait.
  std::optional<Signal> next();

  // Returns when a signal or a wake() came, `other_fd` became readable (-1: none), or at
  // `deadline`.
  void wait(HostTime deadline, int other_fd = -1);
  void wake() noexcept;

  // Stops this process as the terminal's Ctrl-Z does by default; returns when it goes on.
  void stop_self();

  // In a forked child, before exec: everything as the tool itself was given it.
  // Async-signal-safe.
  void restore() const noexcept;

 private:
  SignalStream() = default;
  std::array<struct sigaction, kCaught.size()> before_{};
  std::array<bool, kCaught.size()> caught_{};
};

// While one exists, what would end this process waits: for a SignalStream, which receives it, or
// for the end of this object. For files of one process that a signal between two streams would
// leave behind. Only one at a time in a process, and on the thread that makes the streams.
class SignalsLater {
 public:
  SignalsLater();
  SignalsLater(const SignalsLater&) = delete;
  SignalsLater& operator=(const SignalsLater&) = delete;
  ~SignalsLater();
};

}  // namespace jouleprof::session
