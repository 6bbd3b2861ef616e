// The content of a scenario file. SCENARIO.md explains every key; the members here carry its names.
//
// Times are seconds since the scenario's start, durations seconds.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/nvml_types.h"
#include "base/result.h"
#include "nvml_sim/core/curve.h"
#include "nvml_sim/core/tree_sampler.h"

namespace jouleprof::nvml_sim {

// One summand of a device's power.
struct PowerPart {
  std::function<Curve(Samplers&)> make_curve;
  bool follows_processes = false;
  bool on_wall_clock = false;  // its phase counts from 1970, not from the scenario's start
};

// A power value renewed every `refresh`: the mean over `window`, `lag` before the renewal.
struct PolledSpec {
  double refresh = 0.1;
  double window = 0.025;
  double lag = 0;
  double phase = 0;
  double noise_watts = 0;
  double gain_error = 0;  // a ratio
};

// A buffer of the last `capacity` such values.
struct RingSpec : PolledSpec {
  RingSpec() { refresh = 0.02; }
  double rise = 0;    // time constant of its first-order response to the power
  double jitter = 0;  // maximum shift of a stamp, either way; below refresh / 2
  int capacity = 120;
};

struct CounterSpec {
  double refresh = 0.1;
  double rise = 0;  // as the ring's
  double phase = 0;
  double delay_min = 0, delay_max = 0;  // from an update until it is visible; below refresh
  double quantum_mj = 1;
  double gain_error = 0;
  double initial_joules = 100'000;
};

struct SensorsSpec {
  std::optional<RingSpec> ring;
  std::optional<CounterSpec> counter;
  std::optional<PolledSpec> instant;
  std::optional<PolledSpec> average;
  bool gpu_scope = true;
  bool memory_scope = false;
  bool module_scope = false;
  // Ring, counter and nvmlDeviceGetPowerUsage measure the module instead of the GPU.
  bool covers_module = false;
  bool power_usage_is_average = false;
};

struct LimitSpec {
  double minimum_watts = 200;
  double default_watts = 700;
  double maximum_watts = 700;
  bool settable = true;
  std::optional<double> other_limit_watts;  // of another limiter: the least limit is enforced
  // What the driver makes of a limit that is set, without a word: at least, and a multiple of.
  double clamp_watts = 0;
  double step_watts = 0;
  // At the limit, speed = ((limit - idle) / (demand - idle)) ^ exponent, at least `minimum_speed`.
  double speed_exponent = 1.0 / 3;
  double minimum_speed = 0.2;
};

struct ClocksSpec {
  unsigned sm_max_mhz = 1980;
  unsigned sm_idle_mhz = 345;
  unsigned memory_mhz = 2619;
  unsigned lock_step_mhz = 1;  // a lock is rounded down to a multiple
};

struct TemperatureSpec {
  double ambient_celsius = 25;
  double celsius_per_watt = 0.06;
  std::optional<double> slowdown_celsius;  // from here on the thermal slowdown is reported
  double response = 10;                    // the power counts as its mean over this duration
};

struct ProcessSpec {
  std::optional<pid_t> pid;  // 0: the loading process itself
  double begin = -kForever;  // of its context
  double end = kForever;
  std::optional<TreeSpec> tree;       // each process of a tree
  std::optional<double> utilisation;  // 0 to 1, of a tree split evenly; absent: its CPU use
  std::uint64_t memory_bytes = 0;     // of each process
  bool graphics = false;
  unsigned mig = 0;  // place of its MIG device
};

struct MigSpec {
  std::string profile;  // "1g.10gb"
  std::string uuid;
  unsigned gpu_instance_id = 0;
  unsigned compute_instance_id = 0;
  std::uint64_t memory_bytes = 0;
};

struct DeviceSpec {
  abi::Architecture architecture{};
  std::array<int, 2> compute_capability{};
  std::string name, uuid, serial, pci_bus_id;
  std::uint64_t memory_total_bytes = 0;
  std::uint64_t memory_used_bytes = 0;
  double idle_watts = 0;
  std::optional<double> held_watts;  // while a process holds a context; absent: as idle
  double after_context_watts = 0;    // right after the last context ended; at least idle_watts
  double after_context_decay = 3;    // time constant
  std::optional<double> full_watts;  // absent: the default limit
  std::vector<PowerPart> power;
  std::vector<PowerPart> module_power;  // of the rest of the module
  double memory_idle_watts = 0;
  double memory_share = 0;  // of the GPU's power above idle
  LimitSpec limit;
  ClocksSpec clocks;
  TemperatureSpec temperature;
  SensorsSpec sensors;
  std::vector<ProcessSpec> processes;
  std::vector<MigSpec> mig;

  double full() const { return full_watts.value_or(limit.default_watts); }
  double held() const { return held_watts.value_or(idle_watts); }
};

// In the order of SCENARIO.md's names.
enum class FaultKind { kGpuLost, kFail, kCounterReset, kFrozen, kHang, kSentinel, kDriverReload };
enum class SensorName { kRing, kCounter, kInstant, kAverage };

struct Fault {
  FaultKind kind{};
  double begin = 0;
  double end = kForever;
  std::optional<unsigned> device;  // absent: all
  std::string call;                // fail, hang, sentinel: "nvmlDevice..."
  abi::Return code = abi::Return::kNotSupported;
  SensorName sensor{};          // frozen
  std::uint64_t value = ~0ULL;  // sentinel
};

struct Scenario {
  std::optional<std::int64_t> start_unix_ns;
  std::uint64_t seed = 1;
  std::string driver_version = "580.159.04";
  int cuda_version = 13000;
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

// "kepler" ... "blackwell", "custom".
const std::vector<std::string>& generation_names();

// A board of generation_names()[generation], without identity. Refresh and window of the sensors:
// Yang, Adamek, Armour, "Part-time Power Measurements", SC'24 (arXiv 2312.02741); Hopper's are
// measured. Unpublished values (the ring except Hopper's, all of Blackwell's) are chosen.
DeviceSpec preset(std::size_t generation);

}  // namespace jouleprof::nvml_sim
