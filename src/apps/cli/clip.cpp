#include "apps/cli/clip.h"

#include <vector>

namespace jouleprof::cli {

void clip(model::Recording& recording, HostTime begin, HostTime end) {
  const auto outside = [&](const auto& reading) { return reading.at < begin || reading.at > end; };
  auto& readings = recording.readings;
  std::erase_if(readings.counters,
                [&](const auto& r) { return r.before < begin || r.after > end; });
  std::erase_if(readings.powers, outside);
  std::erase_if(readings.gauges, outside);
  std::erase_if(readings.failures, outside);
  auto& processes = recording.process_readings;
  std::erase_if(processes.processes, outside);
  std::erase_if(processes.gpu_processes, outside);
  std::erase_if(processes.machine, outside);
}

}  // namespace jouleprof::cli
