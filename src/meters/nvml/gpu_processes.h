// Which processes use a GPU, how much of its memory and of its multiprocessors.
#pragma once

#include <cstddef>
#include <map>
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

  // Appends the processes that use the device now, by pid. The utilisation of the multiprocessors
  // is a mean over what the driver sampled since a read that listed the process: the driver reports
  // only processes that were busy, so one that was listed then and is not reported was at 0. It is
  // absent for processes that are new since then, because their part of the driver's buffer still
  // holds samples of earlier processes; where the driver reports more than 100 %; and in reads that
  // did not ask for it. Asked for at most every 3 s (the driver updates a process's samples up
  // to 1.6 s late, and drops them when it ends); of a process that is alone on the device every 30
  // s. Returns the driver's code; an unsupported code where the device does not list processes.
  abi::Return read(const ClockPoint& now, std::vector<model::GpuProcessUse>& out);

  // How many processes the last read listed. Absent when the driver did not answer for all of them.
  std::optional<std::size_t> listed() const { return listed_; }

 private:
  using Stamp = unsigned long long;  // microseconds of the wall clock
  bool ask_utilisation(const ClockPoint& now);
  std::optional<double> utilisation_of(unsigned pid) const;

  const NvmlApi& api_;
  abi::Device device_;
  model::DomainId domain_;
  // From here on the driver is asked for samples; set at a read, of that time.
  Stamp since_;
  HostTime since_at_{};
  bool asked_alone_ = false;                // of the process that is alone
  std::map<unsigned, Stamp> listed_since_;  // by pid, of the last read
  std::optional<std::size_t> listed_;
  std::vector<abi::ProcessInfo> infos_;
  std::vector<abi::ProcessUtilizationSample> samples_;
};

}  // namespace jouleprof::meters::nvml
