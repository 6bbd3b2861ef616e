#include "meters/nvml/api/nvml_clock.h"

#include <thread>

#include "base/process/cpu_time.h"

namespace jouleprof::meters::nvml {

NvmlClock NvmlClock::complete(NvmlClock given) {
  if (!given.now) given.now = &ClockPoint::now;
  if (!given.thread_cpu_time) given.thread_cpu_time = &jouleprof::thread_cpu_time;
  if (!given.sleep) given.sleep = [](Duration d) { std::this_thread::sleep_for(d); };
  return given;
}

}  // namespace jouleprof::meters::nvml
