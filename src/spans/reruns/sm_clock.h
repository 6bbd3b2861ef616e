// The SM clock of one GPU, through NVML.
#pragma once

#include <string>

#include "abi/nvml_abi.h"
#include "base/process/dynlib.h"

namespace jouleprof::reruns {

class SmClock {
 public:
  // `uuid`: "GPU-...". Without NVML, or of a MIG instance, it reads 0.
  explicit SmClock(const std::string& uuid);

  // Hertz; 0: not known.
  double hertz() const;
  // The same while the GPU runs something, else 0.
  double busy_hertz() const;

 private:
  DynLib library_;  // stays loaded
  abi::Device device_ = nullptr;
  abi::fn::DeviceGetClockInfo* clock_ = nullptr;
  abi::fn::DeviceGetCurrentClocksEventReasons* reasons_ = nullptr;
};

}  // namespace jouleprof::reruns
