// Which processes use a GPU, how much of its memory and of its multiprocessors.
#pragma once

#include <optional>
#include <vector>

#include "meters/nvml/nvml_api.h"
#include "model/process.h"

namespace jouleprof::meters::nvml {

class GpuProcesses {
 public:
  // Utilisation is counted from `since` on.
  GpuProcesses(const NvmlApi& api, abi::Device device, model::DomainId domain, RealTime since);

  // Appends the processes that use the device now, by pid. SM utilisation is the mean over what the
  // driver sampled since the call before: it lists only processes that were busy, so one that runs
  // and isn't listed was at 0. Returns the driver's code; unsupported codes where the device can't
  // tell processes apart.
  abi::Return read(const ClockPoint& now, std::vector<model::GpuProcessUse>& out);

 private:
  bool read_utilisation(const ClockPoint& now);

  const NvmlApi& api_;
  abi::Device device_;
  model::DomainId domain_;
  unsigned long long last_seen_;  // microseconds of the wall clock
  std::vector<abi::ProcessInfo> infos_;
  std::vector<abi::ProcessUtilizationSample> samples_;
};

}  // namespace jouleprof::meters::nvml
