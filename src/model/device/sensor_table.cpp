#include "model/device/sensor_table.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>

namespace jouleprof::model {

using namespace std::chrono_literals;

namespace {

constexpr std::string_view kRoot =
    "root, or CAP_PERFMON by the power PMU (reading energy leaks secrets: CVE-2020-8694)";

constexpr std::array kRows{
    SensorRow{"nvmlDeviceGetTotalEnergyConsumption", "card; on a GH200 the module",
              "memory of the card", "1 mJ, documented; held against power in each session",
              "steps every 100 ms, seen up to 28 ms late; sums what samples 20 ms apart show",
              "NVML_ERROR_NOT_SUPPORTED (before Volta), 2^64-1", "host, around the read", "none"},
    SensorRow{"nvmlDeviceGetSamples", "card", "memory of the card", "1 mW, documented",
              "a sample every 20 ms in a ring of some 2 s", "NVML_ERROR_NOT_FOUND, an empty ring",
              "driver, wall clock", "none"},
    SensorRow{"nvmlDeviceGetSamples (module)", "module", "card, CPU of the module",
              "1 mW, documented", "a sample every 20 ms in a ring of some 2 s",
              "NVML_ERROR_NOT_FOUND, an empty ring", "driver, wall clock", "none"},
    SensorRow{"NVML_FI_DEV_POWER_INSTANT", "card", "memory of the card", "1 mW, documented",
              "Pascal, Volta: 10 of 20 ms; Turing: 100 of 100; since Ampere 25 of 100 ms",
              "a field error", "host, at the read", "none"},
    SensorRow{"NVML_FI_DEV_POWER_AVERAGE", "card", "memory of the card", "1 mW, documented",
              "mean of the last second, since Ampere", "a field error", "host, at the read",
              "none"},
    SensorRow{"nvmlDeviceGetPowerUsage", "card", "memory of the card", "1 mW, documented",
              "as the instant field up to Turing and on GA100, else the mean of a second",
              "NVML_ERROR_NOT_SUPPORTED", "host, at the read", "none"},
    SensorRow{"nvidia-smi power.draw.instant", "card", "memory of the card",
              "1 W with two decimals, documented", "as NVML's instant field",
              "[N/A], [Not Supported], [Unknown Error]", "of the log", "none"},
    SensorRow{"nvidia-smi", "card", "memory of the card", "1 W with two decimals, documented",
              "10 to 100 ms on older boards, the mean of a second since Ampere",
              "[N/A], [Not Supported], [Unknown Error]", "of the log", "none"},
    SensorRow{"powercap:", "package, its cores, DRAM, or platform",
              "package: cores and uncore; platform: all", "1 uJ, documented",
              "about 1 ms; a register of 32 bits that wraps", "EACCES, a counter that stands still",
              "host, around the read", kRoot},
    SensorRow{"perf:", "package, its cores, DRAM, or platform",
              "package: cores and uncore; platform: all", "the PMU's own scale file, documented",
              "about 1 ms", "an event that cannot be opened", "host, around the read",
              "perf_event_paranoid below 1, or CAP_PERFMON"},
    SensorRow{"hwmon", "as the driver names it", "", "1 uW and 1 uJ, documented by the kernel",
              "the driver's", "EINVAL, ENODATA, 0 that never changes, 0xFFFFFFFF",
              "host, at the read", "none for most drivers"},
    SensorRow{"hwmon:amdgpu/", "SoC: the GPU's chip; of an APU with its CPU cores", "",
              "1 uW, documented by the kernel; whether the card's memory and converters are in it "
              "differs by family",
              "power1_input: now; power1_average: a mean of the firmware's",
              "EINVAL, EOPNOTSUPP; 0 of a package's second die", "host, at the read", "none"},
    SensorRow{"hwmon:nouveau/", "card", "memory of the card", "1 uW, documented by the kernel",
              "the chip's on the card", "EINVAL, ENODEV", "host, at the read", "none"},
    SensorRow{"hwmon:xe/energy1", "card", "package of the card",
              "1 uJ, documented by the kernel; not held against a power: the driver shows none",
              "a register that counts by milliseconds", "0 where the firmware does not fill it",
              "host, around the read", "none"},
    SensorRow{"hwmon:xe/energy2", "package, a part of the card", "",
              "1 uJ, documented by the kernel; not held against a power: the driver shows none",
              "a register that counts by milliseconds", "0 where the firmware does not fill it",
              "host, around the read", "none"},
    SensorRow{"hwmon:i915/", "package, a part of the card", "",
              "1 uJ, documented by the kernel; not held against a power: the driver shows none",
              "a register that counts by milliseconds", "0 where the firmware does not fill it",
              "host, around the read", "none"},
    SensorRow{"hwmon:power_meter/", "module, Grace, CPU or SysIO by its OEM text; else the machine",
              "module: GPU, Grace; Grace: CPU, SysIO", "1 uW, documented by the kernel",
              "the mean of power1_average_interval, 50 ms or 1 s", "EINVAL, ENODATA, below 0",
              "host, at the read", "none"},
    SensorRow{"hwmon:ina3221/", "rail, by its label", "VDD_IN: all others",
              "1 mV x 1 mA, documented by the kernel", "the mean of update_interval",
              "a channel without label, or NC", "host, at the read", "none"},
    SensorRow{"hwmon:ina238/", "rail, by its label", "VDD_IN: all others",
              "1 uW, documented by the kernel", "the chip's conversion time",
              "a chip without label", "host, at the read", "none"},
    SensorRow{"hwmon:amd_hsmp_hwmon/", "package: the socket", "cores",
              "1 uW, documented by the kernel", "the firmware's", "an error of the mailbox",
              "host, at the read", "none"},
    SensorRow{"hwmon:amd_energy/", "package: the socket", "cores", "1 uJ, documented by the kernel",
              "about 1 ms", "EACCES", "host, around the read", kRoot},
    SensorRow{"powercap:arm-scmi", "zone, as the firmware names it; in no total", "",
              "1 uW, documented by the kernel", "the mean of constraint_0_time_window_us",
              "an error of the firmware", "host, at the read", "none for most kernels"},
    SensorRow{"gpu_metrics:v1.", "socket: all dies and memory of the package", "",
              "2^-16 J, documented by the kernel from v1.4 on, of MI200 by AMD's library; held "
              "against power in each session",
              "the firmware's", "all bits of a field set; a counter at 0", "host, at the read",
              "none"},
    SensorRow{"gpu_metrics:v2.", "processor: CPU cores and GPU", "",
              "1 mW, documented by the kernel for v2.4", "a mean of the firmware's",
              "all bits of a field set", "host, at the read", "none"},
    SensorRow{"gpu_metrics:v3.", "processor: CPU cores and GPU", "",
              "1 mW, documented by the kernel", "a mean of the firmware's",
              "all bits of a field set", "host, at the read", "none"},
    SensorRow{"amdsmi_get_energy_count", "socket: all dies and memory of the package", "",
              "counts of the size that the call states; of Instinct only", "the firmware's",
              "a failed call, 0, 2^64-1", "host, around the read", "none"},
    SensorRow{"zesPowerGetEnergyCounter", "card, else its package", "card: package",
              "1 uJ, documented", "the driver's", "a failed call, 2^64-1", "host, around the read",
              "root on some drivers"},
    SensorRow{"wall:", "node, at its supply", "all of the node",
              "1 W, by the meter's protocol; of SNMP as unit= says",
              "the meter's; a mean where it says so or mean= does",
              "an error, no number, below 0, above 1 MW", "host, at the answer",
              "the meter's credentials; /dev/ipmi0: root"},
    SensorRow{"guest-file", "share of the host's package", "",
              "no sensor of this machine: the host's, divided by CPU time",
              "as often as the host writes it", "a file that is old or missing",
              "host, at the read", "the host's consent"},
    SensorRow{"tegrastats", "rail, by its label", "VDD_IN: all others", "1 mW, documented",
              "as its --interval", "a rail that is not listed", "of the log", "none"},
    SensorRow{"DCGM_FI_DEV_POWER_USAGE", "card", "memory of the card", "1 W, documented",
              "as nvmlDeviceGetPowerUsage", "N/A", "of the log", "none"},
    SensorRow{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "card", "memory of the card",
              "1 mJ, documented; held against power", "steps every 100 ms", "N/A", "of the log",
              "none"},
    SensorRow{"load model", "package", "", "no sensor: a model of the load", "every period", "",
              "host", "none"},
};

// Truth against what the sensor shows, from captures of nvidia-smi next to a meter between supply
// and card (Yang's GPU_Power_Benchmark; the meter's constants are nominal, and it sees fans and
// slot). Two plateaus give gain and offset of a board; the bounds add what boards of one kind
// differ by: the data sheet's 5 %.
constexpr std::array kScales{
    BoardScale{"H100 H200 H800 H20 GH200", -0.05, 0.05, 0, 0, "5 % of the maker; no meter seen"},
    BoardScale{"A100", -0.005, 0.08, 0, 4,
               "a meter: 201 W at 190 shown, 65 at 60; energies +0.6 and +6.1 %"},
    BoardScale{"3090", 0.01, 0.095, -2, 4,
               "a meter: 441 W at 419 shown, 135 at 128; energies +5.9 and +5.5 %"},
    BoardScale{"A5000", 0.02, 0.105, -2, 5, "a meter: 222 W at 207 shown, 86 at 79; energy +7.6 %"},
    BoardScale{"4090", -0.075, 0.01, 14, 26,
               "a meter: 388 W at 385 shown, 70 at 52; energy +5.8 %"},
    BoardScale{"K40m K40c K40s K40t K40", -0.07, 0.015, -2, 2,
               "a meter: 100 W at 103 shown; energy -3.0 %"},
    BoardScale{"Instinct INSTINCT", -0.045, 0.08, -2, 6, "no meter seen; as boards that were"},
    BoardScale{"AMD Radeon", -0.045, 0.2, -2, 6,
               "no meter seen; the kernel names it the chip's power, and an RX 580 of 185 W limits "
               "it to 155 W"},
    BoardScale{"", -0.045, 0.08, -2, 6,
               "boards that were held against a meter: -3 to +8 %, up to 8 W low at idle"},
};

bool has_word(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(" -_"), text.size());
    if (text.substr(0, end) == word) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

ScaleError scale_of(const BoardScale& row) {
  return {row.gain_low, row.gain_high, Power::watts(row.offset_low), Power::watts(row.offset_high),
          std::string(row.source)};
}

SensorTraits traits(Duration refresh, Duration window) {
  SensorTraits t;
  t.refresh = refresh;
  t.window = window;
  return t;
}

SensorTraits instant_traits(std::optional<GpuGeneration> generation) {
  if (!generation) return {};
  switch (*generation) {
    case GpuGeneration::kPascal:
    case GpuGeneration::kVolta:
      return traits(20ms, 10ms);
    case GpuGeneration::kTuring:
      return traits(100ms, 100ms);
    case GpuGeneration::kAmpere:
    case GpuGeneration::kAda:
    case GpuGeneration::kHopper:
    case GpuGeneration::kBlackwell:
      return traits(100ms, 25ms);
  }
  return {};
}

}  // namespace

const SensorRow* row_of(std::string_view sensor_name) {
  const SensorRow* best = nullptr;
  for (const SensorRow& row : kRows) {
    if (!sensor_name.starts_with(row.name)) continue;
    if (best == nullptr || row.name.size() > best->name.size()) best = &row;
  }
  return best;
}

std::span<const BoardScale> board_scales() { return kScales; }

ScaleError scale_of_gpu(std::string_view product_name) {
  for (const BoardScale& row : kScales) {
    for (std::string_view words = row.boards; !words.empty();) {
      const auto end = std::min(words.find(' '), words.size());
      if (has_word(product_name, words.substr(0, end))) return scale_of(row);
      words.remove_prefix(std::min(end + 1, words.size()));
    }
  }
  return scale_of(kScales.back());
}

ScaleError scale_of_rapl_package(bool is_amd) {
  // Before Haswell Intel's was a model, too.
  ScaleError scale = ScaleError::symmetric(is_amd ? 0.1 : 0.05);
  scale.source = is_amd ? "a model of the chip (Schoene et al., CLUSTER 2021)"
                        : "measured since Haswell (Hackenberg et al., 2015)";
  return scale;
}

ScaleError scale_of_rapl_dram() {
  ScaleError scale = ScaleError::symmetric(0.2);
  scale.source = "within 20 % (Desrochers et al., MEMSYS 2016)";
  return scale;
}

ScaleError scale_of_rail() {
  ScaleError scale = ScaleError::symmetric(0.05);
  scale.offset_low = Power::watts(-0.1);
  scale.offset_high = Power::watts(0.1);
  scale.source = "no meter seen; INA3221: 80 uV of a shunt of 5 mOhm at 5 V (data sheet)";
  return scale;
}

std::optional<GpuGeneration> generation_of(std::string_view device_name) {
  using enum GpuGeneration;
  // Whole words of product names, so that no name is taken for another's ("A10" in "A100").
  constexpr std::array<std::pair<std::string_view, GpuGeneration>, 27> kWords{{
      {"P100", kPascal},    {"P40", kPascal},      {"P4", kPascal},       {"V100", kVolta},
      {"V100S", kVolta},    {"T4", kTuring},       {"A100", kAmpere},     {"A800", kAmpere},
      {"A40", kAmpere},     {"A30", kAmpere},      {"A10", kAmpere},      {"A10G", kAmpere},
      {"A16", kAmpere},     {"A2", kAmpere},       {"L40", kAda},         {"L40S", kAda},
      {"L4", kAda},         {"H100", kHopper},     {"H200", kHopper},     {"H800", kHopper},
      {"H20", kHopper},     {"GH200", kHopper},    {"B100", kBlackwell},  {"B200", kBlackwell},
      {"B300", kBlackwell}, {"GB200", kBlackwell}, {"GB300", kBlackwell},
  }};
  while (!device_name.empty()) {
    const auto end = device_name.find_first_of(" -");
    const std::string_view word = device_name.substr(0, end);
    for (const auto& [name, generation] : kWords) {
      if (word == name) return generation;
    }
    if (end == std::string_view::npos) break;
    device_name.remove_prefix(end + 1);
  }
  return std::nullopt;
}

GpuTraits default_traits(std::optional<GpuGeneration> generation, bool module) {
  GpuTraits t;
  t.counter.refresh = 100ms;
  t.counter.quantum = Energy::millijoules(1);
  t.instant = instant_traits(generation);
  if (module) t.instant = traits(100ms, 20ms);
  t.ring.refresh = 20ms;
  t.ring.window = t.instant.window.value_or(25ms);
  t.ring.lag = Duration(2500us);
  if (generation == GpuGeneration::kHopper && !module) {
    t.ring.window = 3ms;
    t.ring.lag = Duration(2700us);
    t.ring.rise = t.counter.rise = 14ms;
  }
  t.average = traits(100ms, 1s);
  return t;
}

std::string amd_uuid(std::string_view unique_id) {
  const bool is_number =
      unique_id.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  if (!is_number || unique_id.find_first_not_of('0') == std::string_view::npos) return {};
  return "GPU-" + std::string(unique_id);
}

}  // namespace jouleprof::model
