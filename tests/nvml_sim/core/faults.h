// The faults of a scenario that are in force at a time.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "abi/nvml_abi.h"
#include "nvml_sim/core/scenario.h"

namespace jouleprof::nvml_sim {

// Immutable, so thread-safe. Times are seconds since the scenario's start. A fault of
// nvmlDeviceGetCount applies to nvmlDeviceGetCount_v2, too. A call without a device is the
// library's.
class Faults {
 public:
  explicit Faults(std::vector<Fault> faults) : faults_(std::move(faults)) {}

  // The error that `call` returns.
  std::optional<abi::Return> failure(std::string_view call, std::optional<unsigned> device,
                                     double t) const;
  // The kHang that applies to `call`; null: none.
  const Fault* hang(std::string_view call, std::optional<unsigned> device, double t) const;
  // When the driver was last loaded again; absent: never.
  std::optional<double> last_reload(unsigned device, double t) const;

 private:
  std::vector<Fault> faults_;
};

}  // namespace jouleprof::nvml_sim
