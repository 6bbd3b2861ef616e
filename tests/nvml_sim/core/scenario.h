// The content of a scenario file. SCENARIO.md explains every key; the members here carry its names.
//
// Times are seconds since the scenario's start, durations seconds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/nvml_abi.h"
#include "base/result.h"
#include "nvml_sim/core/curve.h"
#include "nvml_sim/core/sensors.h"

namespace jouleprof::nvml_sim {

// One summand of a device's power, of a scenario that started at this time on CLOCK_REALTIME.
using PowerPart = std::function<Curve(std::int64_t epoch_ns)>;

struct ClocksSpec {
  unsigned sm_max_mhz = 0;
  unsigned sm_idle_mhz = 0;
  unsigned memory_mhz = 0;
  unsigned lock_step_mhz = 1;  // a lock is rounded down to a multiple
};

// What a generation's boards are and have. Refresh and window of the sensors: Yang, Adamek, Armour,
// "Part-time Power Measurements", SC'24 (arXiv 2312.02741); Hopper's are measured. Those of the
// ring except Hopper's are chosen.
struct Board {
  const char* generation;
  abi::Architecture architecture;
  int compute_major, compute_minor;
  const char* name;
  std::uint64_t memory_gib;
  double idle_watts, minimum_watts, default_watts;
  ClocksSpec clocks;
  RingSpec ring;
  bool has_counter;
  PolledSpec instant;
  bool has_average;           // over 1 s: what nvmlDeviceGetPowerUsage gives then
  bool has_memory = false;    // a power of its own
  bool is_superchip = false;  // ring, counter and nvmlDeviceGetPowerUsage measure the module
};

struct LimitSpec {
  double minimum_watts = 0;
  double default_watts = 0;
  double maximum_watts = 0;
  bool settable = true;
  std::optional<double> other_limit_watts;  // of another limiter: the least limit is enforced
  // What the driver makes of a limit that is set, without a word: at least, and a multiple of.
  double clamp_watts = 0;
  double step_watts = 0;
};

struct TemperatureSpec {
  double ambient_celsius = 25;
  double celsius_per_watt = 0;
  std::optional<double> slowdown_celsius;  // from here on the thermal slowdown is reported
};

struct ProcessSpec {
  std::optional<pid_t> pid;  // 0: the loading process itself
  std::string environment;   // without a pid: of each process of a tree
  double sample_period = 0.1;
  double begin = -kForever;  // of its context
  double end = kForever;
  double utilisation = 0;          // 0 to 1; of a tree split evenly
  std::uint64_t memory_bytes = 0;  // of each process
  unsigned mig = 0;                // place of its MIG device
};

struct MigSpec {
  std::string profile;  // "1g.10gb"
  std::string uuid;
  unsigned gpu_instance_id = 0;
  std::uint64_t memory_bytes = 0;
};

struct DeviceSpec {
  const Board* board = nullptr;
  bool gpu_scope = true;  // whether fields of power have it
  std::string name, uuid;
  std::uint64_t memory_total_bytes = 0;
  double idle_watts = 0;
  std::optional<double> held_watts;  // while a process holds a context; absent: as idle
  double after_context_watts = 0;    // right after the last context ended; at least idle_watts
  double after_context_decay = 3;    // time constant
  std::vector<PowerPart> power;
  std::vector<PowerPart> module_power;  // of the rest of the module
  LimitSpec limit;
  ClocksSpec clocks;
  TemperatureSpec temperature;
  std::vector<ProcessSpec> processes;
  std::vector<MigSpec> mig;

  double held() const { return held_watts.value_or(idle_watts); }
};

// In the order of SCENARIO.md's names.
enum class FaultKind { kGpuLost, kFail, kHang, kDriverReload };

struct Fault {
  FaultKind kind{};
  double begin = 0;
  double end = kForever;
  std::optional<unsigned> device;  // absent: all
  std::string call;                // fail, hang: "nvmlDevice..."
};

struct Scenario {
  std::map<std::string, double, std::less<>> call_costs;  // seconds of CPU time by function name
  std::vector<DeviceSpec> devices;
  std::vector<Fault> faults;
};

// Errors: invalid_argument with the file and the path of the key
// ("devices[0].power[1].period_seconds"), also for an unknown key; those of read_file.
Result<Scenario> parse_scenario(std::string_view text, const std::filesystem::path& path);
Result<Scenario> load_scenario(const std::filesystem::path& path);

// One idle H100.
Scenario default_scenario();

}  // namespace jouleprof::nvml_sim
