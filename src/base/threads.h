// Starting threads that leave signals to others, and waiting on our clock.
#pragma once

#include <signal.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace jouleprof {

// A thread that takes no signals: they are for the session's, or the program's, own threads.
// Throws std::system_error where there are no more threads.
template <typename Work>
std::thread start_without_signals(Work&& work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread(std::forward<Work>(work));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

// For wait_until: libstdc++'s and libc++'s steady clock is CLOCK_MONOTONIC, as is ours.
inline std::chrono::steady_clock::time_point steady(HostTime t) {
  return std::chrono::steady_clock::time_point{t.time_since_epoch()};
}

}  // namespace jouleprof
