// Which of a scenario's faults is in force when.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "apps/nvml_sim/core/scenario.h"

namespace jouleprof::nvml_sim {

// Immutable, so thread-safe. Times are seconds since the scenario's start. Calls are named as their
// symbols, without the suffix that numbers a layout: nvmlDeviceGetCount_v2 counts as
// nvmlDeviceGetCount too.
class Faults {
 public:
  explicit Faults(std::vector<Fault> faults) : faults_(std::move(faults)) {}

  // What `call` must return instead of working, if anything. Without a device: of the library.
  std::optional<abi::Return> failure(std::string_view call, std::optional<unsigned> device,
                                     double t) const;
  // When a call made at `t` that hangs comes back (kForever: never); absent: it doesn't hang.
  std::optional<double> hangs_until(std::string_view call, std::optional<unsigned> device,
                                    double t) const;
  // The value that `call` shows instead of the right one.
  std::optional<std::uint64_t> sentinel(std::string_view call, unsigned device, double t) const;
  // The time whose reading a sensor shows at `t`: `t`, or when it froze.
  double sensor_time(SensorName sensor, unsigned device, double t) const;
  // When the counter last began again from zero; absent: never.
  std::optional<double> counter_origin(unsigned device, double t) const;
  // When the driver was last loaded again; absent: never.
  std::optional<double> last_reload(unsigned device, double t) const;

 private:
  std::vector<Fault> faults_;
};

}  // namespace jouleprof::nvml_sim
