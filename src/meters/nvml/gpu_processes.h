// Which processes use a GPU, how much of its memory and of its multiprocessors.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "meters/nvml/api/nvml_api.h"
#include "model/process/process.h"

namespace jouleprof::meters::nvml {

// Whether the driver lists the processes that compute on this device.
bool lists_processes(const NvmlApi& api, abi::Device device);

class GpuProcesses {
 public:
  // Utilisation is counted from `since` on.
  GpuProcesses(const NvmlApi& api, abi::Device device, model::DomainId domain, RealTime since);

  // Appends the processes that use the device now, by pid. SM utilisation is the mean over what the
  // driver sampled since the call before: it lists only processes that were busy, so one that runs
  // and isn't listed was at 0. The utilisation of a process that is alone on the device is read
  // when the process appears and every 30 s from then on, as the mean since the last read; in
  // between it is absent. Returns the driver's code; an unsupported code where the device does not
  // list processes.
  abi::Return read(const ClockPoint& now, std::vector<model::GpuProcessUse>& out);

  // How many processes the last read listed. Absent when the driver did not answer for all of them.
  std::optional<std::size_t> listed() const { return listed_; }

 private:
  // A process that is alone on the device.
  struct Alone {
    unsigned pid = 0;
    HostTime ask_at{};             // when to read its utilisation
    unsigned long long since = 0;  // its utilisation was read up to here; as last_seen_
  };
  bool ask_utilisation(const ClockPoint& now, std::size_t processes, unsigned pid);
  bool read_utilisation(const ClockPoint& now, unsigned long long since);

  const NvmlApi& api_;
  abi::Device device_;
  model::DomainId domain_;
  unsigned long long last_seen_;  // microseconds of the wall clock
  std::optional<Alone> alone_;
  std::optional<std::size_t> listed_;
  std::vector<abi::ProcessInfo> infos_;
  std::vector<abi::ProcessUtilizationSample> samples_;
};

}  // namespace jouleprof::meters::nvml
