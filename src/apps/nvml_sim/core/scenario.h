// What a scenario file says. SCENARIO.md explains every key; the members here carry its names.
//
// Times are seconds since the scenario's start unless a name says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/nvml_types.h"
#include "apps/nvml_sim/core/curve.h"
#include "apps/nvml_sim/core/process_tree.h"
#include "base/result.h"

namespace jouleprof::nvml_sim {

enum class Shape { kConstant, kSquare, kRamp, kSine, kTrace, kFollow };

// One summand of a device's power.
struct PowerPart {
  Shape shape = Shape::kConstant;
  double watts = 0;                          // constant
  double low = 0, high = 0;                  // square; ramp: from, to; follow: idle, full
  double mean = 0, amplitude = 0;            // sine
  double period = 1, duty = 0.5, phase = 0;  // square, sine
  bool wall_clock = false;                   // the phase counts from 1970, not from the start
  double ramp_begin = 0, ramp_duration = 1;  // ramp
  Corners trace;                             // trace
  bool repeat = false;                       // trace
  TreeTarget tree;                           // follow
  double cpus = 1;                           // follow: so many busy processors are full power
  double sample = 0.1;                       // follow: seconds
  double begin = -kForever, end = kForever;  // counts only in between
};

struct RingSpec {
  double refresh = 0.02;
  double window = 0.025;
  double lag = 0;
  double rise = 0;    // time constant with which it follows the power
  double jitter = 0;  // stamps lie up to this far on either side; below refresh / 2
  double phase = 0;
  int capacity = 120;
  double noise_watts = 0;
  double gain_error = 0;  // a ratio

  bool operator==(const RingSpec&) const = default;
};

struct CounterSpec {
  double refresh = 0.1;
  double rise = 0;  // as the ring's
  double phase = 0;
  double delay_min = 0, delay_max = 0;  // from an edge until its update is seen; below refresh
  double quantum_mj = 1;
  double gain_error = 0;
  double initial_joules = 100'000;

  bool operator==(const CounterSpec&) const = default;
};

// A value renewed every `refresh`.
struct PolledSpec {
  double refresh = 0.1;
  double window = 0.025;
  double lag = 0;
  double phase = 0;
  double noise_watts = 0;
  double gain_error = 0;

  bool operator==(const PolledSpec&) const = default;
};

struct SensorsSpec {
  std::optional<RingSpec> ring;
  std::optional<CounterSpec> counter;
  std::optional<PolledSpec> instant;
  std::optional<PolledSpec> average;
  bool gpu_scope = true;
  bool memory_scope = false;
  bool module_scope = false;
  // What ring, counter and nvmlDeviceGetPowerUsage see: the module instead of the GPU.
  bool covers_module = false;
  bool power_usage_is_average = false;
};

struct LimitSpec {
  double default_watts = 700;
  double minimum_watts = 200;
  double maximum_watts = 700;
  bool settable = true;
  // At the limit, speed = ((limit - idle) / (demand - idle)) ^ exponent, at least `minimum_speed`.
  double speed_exponent = 1.0 / 3;
  double minimum_speed = 0.2;
};

struct ClocksSpec {
  unsigned sm_max_mhz = 1980;
  unsigned sm_idle_mhz = 345;
  unsigned memory_mhz = 2619;
};

struct TemperatureSpec {
  double ambient_celsius = 25;
  double celsius_per_watt = 0.06;
  double response = 10;  // the mean power of so many seconds counts
};

struct ProcessSpec {
  std::optional<pid_t> pid;           // 0: the loading process itself
  std::optional<TreeTarget> tree;     // each process of a tree
  std::optional<double> utilisation;  // 0 to 1, of a tree split evenly; absent: its CPU use
  double cpus = 1;
  double sample = 0.1;
  std::uint64_t memory_bytes = 0;  // of each process
  bool graphics = false;
};

struct MigSpec {
  std::string profile;  // "1g.10gb"
  std::string uuid;
  unsigned gpu_instance_id = 0;
  unsigned compute_instance_id = 0;
  std::uint64_t memory_bytes = 0;
};

struct DeviceSpec {
  std::string generation;
  abi::Architecture architecture = abi::Architecture::kHopper;
  std::array<int, 2> compute_capability{9, 0};
  std::string name;
  std::string uuid;
  std::string serial;
  std::string pci_bus_id;
  std::uint64_t memory_total_bytes = 0;
  std::uint64_t memory_used_bytes = 0;
  double idle_watts = 70;
  std::optional<double> full_watts;  // absent: the default limit
  std::vector<PowerPart> power;
  std::vector<PowerPart> module_power;  // of the module, beyond the GPU's
  double memory_idle_watts = 0;
  double memory_share = 0;  // of what the GPU draws above idle
  LimitSpec limit;
  ClocksSpec clocks;
  TemperatureSpec temperature;
  SensorsSpec sensors;
  std::vector<ProcessSpec> processes;
  std::vector<MigSpec> mig;

  double full() const { return full_watts.value_or(limit.default_watts); }
};

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

// Reads a scenario. Errors: invalid_argument with the file and the path of the key
// ("devices[0].power[1].period_seconds"), also for a key that is not known; those of read_file.
Result<Scenario> parse_scenario(std::string_view text, const std::filesystem::path& path);
Result<Scenario> load_scenario(const std::filesystem::path& path);

// One H100-like GPU at constant idle.
Scenario default_scenario();

}  // namespace jouleprof::nvml_sim
