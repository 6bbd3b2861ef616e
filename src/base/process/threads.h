// Starting threads that leave signals to others, and waiting on our clock.
#pragma once

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace jouleprof {

// A thread that takes no signals: they are for the session's, or the program's, own threads.
// std::system_error gets out where there are no more threads.
template <typename Work>
std::thread start_without_signals(Work&& work) {
  // Puts the mask back, whether or not there is a thread.
  class Masked {
   public:
    Masked() {
      sigset_t all;
      sigfillset(&all);
      // Of a crash in the thread itself: blocked, they would end the program unhandled.
      for (const int crash : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigdelset(&all, crash);
      pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    Masked(const Masked&) = delete;
    Masked& operator=(const Masked&) = delete;
    ~Masked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

   private:
    sigset_t before_{};
  };
  const Masked masked;
  return std::thread(std::forward<Work>(work));
}

// For poll(): how long it is until `t`, rounded up, an hour at most; HostTime::max(): for ever.
inline int milliseconds_until(HostTime t) {
  if (t == HostTime::max()) return -1;
  constexpr Duration kMost = std::chrono::hours{1};
  const Duration left = std::clamp<Duration>(t - HostClock::now(), Duration{}, kMost);
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

// For wait_until: libstdc++'s and libc++'s steady clock is CLOCK_MONOTONIC, as is ours.
inline std::chrono::steady_clock::time_point steady(HostTime t) {
  return std::chrono::steady_clock::time_point{t.time_since_epoch()};
}

}  // namespace jouleprof
