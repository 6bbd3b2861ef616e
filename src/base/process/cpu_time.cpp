#include "base/process/cpu_time.h"

#include <time.h>

#include <chrono>

namespace jouleprof {

Duration thread_cpu_time() noexcept {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec};
}

}  // namespace jouleprof
