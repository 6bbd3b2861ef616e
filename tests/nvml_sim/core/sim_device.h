// One simulated GPU: its true power and the values that its driver shows.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "nvml_sim/core/contexts.h"
#include "nvml_sim/core/faults.h"
#include "nvml_sim/core/limited_power.h"
#include "nvml_sim/core/scenario.h"
#include "nvml_sim/core/sensors.h"
#include "nvml_sim/core/tree_sampler.h"

namespace jouleprof::nvml_sim {

enum class Scope { kGpu, kModule, kMemory };

struct ProcessUse {
  pid_t pid = 0;
  double utilisation = 0;  // 0 to 1
  std::uint64_t memory_bytes = 0;
  unsigned mig = 0;  // place of its MIG device
};

// Thread-safe. Times are seconds since the scenario's start. Values of the future are right only
// where the power does not follow processes.
class SimDevice {
 public:
  // `faults` must outlive the device. `epoch_ns` is the scenario's start on CLOCK_REALTIME.
  SimDevice(DeviceSpec spec, unsigned index, const Faults& faults, std::int64_t epoch_ns);

  const DeviceSpec& spec() const { return spec_; }
  unsigned index() const { return index_; }

  // The truth.
  double joules(Scope scope, double begin, double end) const;
  double watts(double t) const { return power_.watts(t); }
  // No context that raises power, and no work: clocks are down.
  bool at_rest(double t) const;
  // The speed of work as a ratio of its speed without a power limit. SCENARIO.md states the curve.
  double speed(double t) const;
  // The limit that was set, and what is enforced: the least of it and of other limiters'.
  double requested_limit() const;
  double limit(double t) const { return power_.limit(t); }
  void set_limit(double t, double watts);
  // The highest SM clock allowed; nothing: no clock is locked.
  void lock_clock(double t, std::optional<double> mhz);
  // The highest memory clock allowed.
  void lock_memory_clock(double t, std::optional<double> mhz);
  unsigned memory_clock_mhz() const;
  // From now on nothing can be set, as without permission.
  void refuse_settings(bool refused) { refused_ = refused; }
  bool accepts_settings() const { return spec_.limit.settable && !refused_; }
  bool is_hot(double t) const;
  bool at_limit(double t) const { return power_.demand(t) > power_.limit(t); }

  // What the sensors show; absent where the board has none.
  std::vector<RingSample> ring(Scope scope, double t) const;
  std::optional<std::uint64_t> counter_mj(double t) const;
  PolledValue instant(Scope scope, double t) const;
  std::optional<PolledValue> average(Scope scope, double t) const;
  // What the counter, the ring and nvmlDeviceGetPowerUsage measure.
  Scope own_scope() const { return spec_.board->is_superchip ? Scope::kModule : Scope::kGpu; }
  bool has_scope(Scope scope) const;

  double utilisation(double t) const;  // 0 to 1, the mean over the second before
  unsigned sm_clock_mhz(double t) const;
  double temperature_celsius(double t) const;
  std::vector<ProcessUse> processes(double t) const;
  // How long the processes of a MIG device had used it up to `t`. Those of a tree count from the
  // first call on, as they are at each call.
  double busy_seconds(unsigned mig, double t) const;

 private:
  EnergyBetween energy_of(Scope scope) const;
  void apply_clocks(double t);  // requested_mutex_ is locked

  const DeviceSpec spec_;
  const unsigned index_;
  const Faults& faults_;
  // The sampler of each of spec_.processes; null where it is no tree.
  std::vector<std::shared_ptr<const TreeSampler>> process_samplers_;
  std::shared_ptr<const Contexts> contexts_;
  Curve context_power_;
  LimitedPower power_;
  Curve module_extra_;
  std::atomic<bool> refused_ = false;
  mutable std::mutex requested_mutex_;
  double requested_watts_;
  double sm_ratio_ = 1;  // of the locked clocks
  double memory_ratio_ = 1;
  struct TreeUse {
    double at = 0;
    double use = 0;
    double busy_seconds = 0;
  };
  mutable std::mutex tree_use_mutex_;
  mutable std::map<std::size_t, TreeUse> tree_use_;  // by place of spec_.processes
};

}  // namespace jouleprof::nvml_sim
