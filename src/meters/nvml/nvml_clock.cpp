#include "meters/nvml/nvml_clock.h"

#include <time.h>

#include <chrono>
#include <thread>

namespace jouleprof::meters::nvml {

NvmlClock NvmlClock::complete(NvmlClock given) {
  if (!given.now) given.now = &ClockPoint::now;
  if (!given.thread_cpu_time) {
    given.thread_cpu_time = [] {
      timespec t{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
      return Duration(std::chrono::seconds(t.tv_sec)) + Duration(t.tv_nsec);
    };
  }
  if (!given.sleep) given.sleep = [](Duration d) { std::this_thread::sleep_for(d); };
  return given;
}

}  // namespace jouleprof::meters::nvml
