// One simulated GPU: its true power and what its driver shows of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "apps/nvml_sim/core/faults.h"
#include "apps/nvml_sim/core/limited_power.h"
#include "apps/nvml_sim/core/scenario.h"
#include "apps/nvml_sim/core/sensors.h"
#include "apps/nvml_sim/core/tree_sampler.h"

namespace jouleprof::nvml_sim {

enum class Scope { kGpu, kModule, kMemory };

struct ProcessUse {
  pid_t pid = 0;
  double utilisation = 0;  // 0 to 1
  std::uint64_t memory_bytes = 0;
  bool graphics = false;
};

// Process trees that are watched, one sampler for each kind of watching.
using Samplers = std::vector<std::shared_ptr<TreeSampler>>;

// Thread-safe. Times are seconds since the scenario's start; what is asked about the future is
// right only where the power does not follow processes.
class SimDevice {
 public:
  // `epoch_ns` is the scenario's start on CLOCK_REALTIME. Samplers that the device needs are taken
  // from `samplers` or added to it. `faults` must outlive the device.
  SimDevice(DeviceSpec spec, unsigned index, std::uint64_t seed, std::int64_t epoch_ns,
            const Faults& faults, Samplers& samplers);

  const DeviceSpec& spec() const { return spec_; }
  unsigned index() const { return index_; }

  // The truth.
  double joules(Scope scope, double begin, double end) const;
  double watts(double t) const { return power_.watts(t); }
  // How fast work runs, against no power limit: 1 or less. SCENARIO.md states the curve.
  double speed(double t) const;
  double limit(double t) const { return power_.limit(t); }
  void set_limit(double t, double watts) { power_.set_limit(t, watts); }

  // What sensors show; absent where the device has none.
  std::optional<std::vector<RingSample>> ring(Scope scope, double t) const;
  std::optional<std::uint64_t> counter_mj(double t) const;
  std::optional<PolledValue> instant(Scope scope, double t) const;
  std::optional<PolledValue> average(Scope scope, double t) const;
  std::optional<PolledValue> power_usage(double t) const;
  // What the counter, the ring and power_usage are about.
  Scope own_scope() const { return spec_.sensors.covers_module ? Scope::kModule : Scope::kGpu; }
  bool has_scope(Scope scope) const;

  // What else the driver tells.
  double utilisation(double t) const;  // 0 to 1, the mean over the second before
  unsigned sm_clock_mhz(double t) const;
  double temperature_celsius(double t) const;
  bool at_limit(double t) const { return power_.demand(t) > power_.limit(t); }
  std::vector<ProcessUse> processes() const;

 private:
  EnergyBetween energy_of(Scope scope) const;
  Noise noise(std::uint64_t sensor, Scope scope) const;
  std::optional<PolledValue> polled(const std::optional<PolledSpec>& spec, SensorName name,
                                    Scope scope, double t) const;

  const DeviceSpec spec_;
  const unsigned index_;
  const std::uint64_t seed_;
  const Faults& faults_;
  // The sampler of each of spec_.processes; null for those that are no tree.
  std::vector<std::shared_ptr<const TreeSampler>> process_samplers_;
  LimitedPower power_;
  CurvePtr module_extra_;
};

// The power of `parts` added up; `parts` empty: constant `otherwise` watts.
CurvePtr make_curve(const std::vector<PowerPart>& parts, double otherwise, std::int64_t epoch_ns,
                    Samplers& samplers);

}  // namespace jouleprof::nvml_sim
