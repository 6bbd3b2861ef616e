// Starting threads that harm no program that they are in, waiting on our clock, and objects that
// threads may use while the process exits.
#pragma once

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/result.h"

namespace jouleprof {

// What an exception says, in words of ours for a lack of memory.
inline const char* reason_of(const std::exception& e) noexcept {
  return dynamic_cast<const std::bad_alloc*>(&e) != nullptr ? "memory ran out" : e.what();
}

// Starts `work` on a thread of ours, in this program or in somebody's. It takes no signals: they
// are for the session's, or the program's, own threads. Whatever `work` throws ends that thread
// alone: `failed` is then called on it with the reason, and what that throws is lost. Errors:
// unavailable where no thread can be started.
template <typename Work, typename Failed>
Result<std::thread> start_thread(Work work, Failed failed) {
  // Puts the mask back, whether or not there is a thread.
  class Masked {
   public:
    Masked() {
      sigset_t all;
      sigfillset(&all);
      // These report a crash in the thread itself: blocked, they would end the program unhandled.
      for (const int crash : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigdelset(&all, crash);
      pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    Masked(const Masked&) = delete;
    Masked& operator=(const Masked&) = delete;
    ~Masked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

   private:
    sigset_t before_{};
  };
  const auto end_with = [](Failed& report, const char* why) noexcept {
    try {
      report(why);
    } catch (...) {  // no memory to say so
    }
  };
  const Masked masked;
  try {
    return std::thread([work = std::move(work), failed = std::move(failed), end_with]() mutable {
      try {
        work();
      } catch (const std::exception& e) {
        end_with(failed, reason_of(e));
      } catch (...) {
        end_with(failed, "an exception of an unknown type");
      }
    });
  } catch (const std::exception& e) {
    return fail(Errc::kUnavailable, std::string("cannot start a thread: ") + reason_of(e));
  }
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

// An object for the life of the process, in static memory. `static NeverDestroyed<T> only;`: other
// threads may use it while the process exits, and it asks for no memory of its own, so that it can
// be made where there is none.
template <typename T>
class NeverDestroyed {
 public:
  NeverDestroyed() { ::new (static_cast<void*>(place_)) T; }
  NeverDestroyed(const NeverDestroyed&) = delete;
  NeverDestroyed& operator=(const NeverDestroyed&) = delete;

  T& operator*() { return *std::launder(reinterpret_cast<T*>(place_)); }
  T* operator->() { return &**this; }

 private:
  alignas(T) std::byte place_[sizeof(T)];
};

}  // namespace jouleprof
