// A running scenario: its devices, its clock, and the settings that processes share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "nvml_sim/core/faults.h"
#include "nvml_sim/core/scenario.h"
#include "nvml_sim/core/sim_device.h"

namespace jouleprof::nvml_sim {

// The simulator's environment variables; an absent one is empty.
struct Settings {
  std::string scenario;  // JOULEPROF_NVML_SCENARIO: a file; empty: default_scenario()
  std::string epoch;     // JOULEPROF_NVML_EPOCH: unix seconds
  std::string state;     // JOULEPROF_NVML_STATE: the file through which processes share settings

  static Settings from_environment();
  bool operator==(const Settings&) const = default;
};

// Thread-safe.
class Simulator {
 public:
  // Starts now where the settings fix no start. Errors: as load_scenario; invalid_argument when the
  // epoch is not a number.
  static Result<std::unique_ptr<Simulator>> open(const Settings& settings);

  // `state`: see Settings; may be empty.
  Simulator(Scenario scenario, std::int64_t epoch_ns, std::filesystem::path state = {});

  const Scenario& scenario() const { return scenario_; }
  const Faults& faults() const { return faults_; }
  const std::vector<std::unique_ptr<SimDevice>>& devices() const { return devices_; }

  std::int64_t epoch_ns() const { return epoch_ns_; }
  double now() const;                             // seconds since the start
  double to_seconds(std::int64_t real_ns) const;  // of CLOCK_REALTIME
  std::int64_t to_real_us(double seconds) const;

  // Sets a limit from now on, for all processes of one state file. Errors: of writing the file.
  Result<void> set_limit(unsigned device, double watts);
  // Sets the highest SM clock allowed in this way; nothing: no clock is locked.
  Result<void> lock_clock(unsigned device, std::optional<double> mhz);
  Result<void> lock_memory_clock(unsigned device, std::optional<double> mhz);
  // Applies the settings that other processes have set since the last call.
  void take_shared_settings();

 private:
  Result<void> share(const std::string& setting);

  const Scenario scenario_;
  const std::int64_t epoch_ns_;
  const std::filesystem::path state_;
  const Faults faults_;
  std::vector<std::unique_ptr<SimDevice>> devices_;
  std::mutex state_mutex_;
  std::size_t state_read_ = 0;  // bytes of the state file that were applied
};

}  // namespace jouleprof::nvml_sim
