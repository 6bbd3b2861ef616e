// Sensors of domains: their known traits, the quantities that they show, and what was read.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jouleprof/units.h"
#include "model/domain.h"

namespace jouleprof::model {

enum class SensorKind {
  kEnergyCounter,  // accumulates energy; steps at its update edges
  kPowerRing,      // the driver's own buffer of stamped samples, each a mean over `window`
  kPowerInstant,   // polled; a mean over `window`, renewed every `refresh`
  kPowerAverage,   // polled; a moving average of about a second, never used for less than seconds
  kGauge,          // anything that is not power: clocks, temperature, utilisation, ...
};

inline constexpr Names<SensorKind, 5> kSensorKinds{{{SensorKind::kEnergyCounter, "energy_counter"},
                                                    {SensorKind::kPowerRing, "power_ring"},
                                                    {SensorKind::kPowerInstant, "power_instant"},
                                                    {SensorKind::kPowerAverage, "power_average"},
                                                    {SensorKind::kGauge, "gauge"}}};
inline std::string_view to_string(SensorKind kind) {
  return name_in(kSensorKinds, kind, "unknown");
}
inline std::optional<SensorKind> parse_sensor_kind(std::string_view text) {
  return value_in(kSensorKinds, text);
}

enum class SensorId : std::uint32_t {};

// Where the truth lies, at 95 %, of a sensor that shows a power P:
//   from P x (1 + gain_low) + offset_low to P x (1 + gain_high) + offset_high.
// It is the same for every reading of one device, so it bounds joules; between two energies of one
// device the gain cancels, and so does the offset where both took the same time.
struct ScaleError {
  double gain_low = -0.05;
  double gain_high = 0.05;
  Power offset_low{};
  Power offset_high{};
  std::string source;  // what it rests on, in words; empty: the sensor's maker or nothing

  static ScaleError symmetric(double gain) { return {-gain, gain, {}, {}, {}}; }

  // Half of each interval, and how far its middle lies above what the sensor shows.
  double gain_half() const { return (gain_high - gain_low) / 2; }
  double gain_shift() const { return (gain_high + gain_low) / 2; }
  Power offset_half() const { return (offset_high - offset_low) * 0.5; }
  Power offset_shift() const { return (offset_high + offset_low) * 0.5; }
  // The gain's larger side.
  double gain_most() const { return gain_high > -gain_low ? gain_high : -gain_low; }

  bool operator==(const ScaleError&) const = default;
};

// The traits of a sensor. An absent trait is unknown, not zero.
struct SensorTraits {
  std::optional<Duration> refresh;  // between two new values
  std::optional<Duration> window;   // each value is the mean over this long ...
  std::optional<Duration> lag;      // ... ending this long before its stamp
  // Before that mean is taken, power follows the load with a first-order lag of this time constant:
  // board and sensor together. Absent: without delay.
  std::optional<Duration> rise;
  std::optional<Duration> read_cost;  // CPU time of one read
  std::optional<Energy> wrap;         // a counter restarts from zero after this much
  Energy quantum{};                   // a counter's smallest step
  ScaleError scale = {};
  // Analysis multiplies every reading by it: the board was calibrated against a meter. Recordings
  // hold readings as they were read.
  double correction = 1;

  bool operator==(const SensorTraits&) const = default;
};

struct Sensor {
  SensorId id{};
  DomainId domain{};
  SensorKind kind{};
  // The interface it is read through: "nvmlDeviceGetTotalEnergyConsumption",
  // "powercap:intel-rapl:0/energy_uj". For a gauge, the quantity with its unit: `gauge`
  // below.
  std::string name;
  Provenance provenance = Provenance::kMeasured;
  SensorTraits traits;

  bool operator==(const Sensor&) const = default;
};

// Names of the recorded quantities other than power. A name ends with its SI unit, if it has one.
namespace gauge {

inline constexpr std::string_view kSmClock = "sm_clock_hertz";
inline constexpr std::string_view kMemoryClock = "memory_clock_hertz";
inline constexpr std::string_view kTemperature = "temperature_celsius";
inline constexpr std::string_view kMemoryTemperature = "memory_temperature_celsius";
inline constexpr std::string_view kGpuUtilisation = "gpu_utilisation_ratio";
// The part of the time in which the multiprocessors of a GPU instance had work: the mean since the
// reading before.
inline constexpr std::string_view kSmActivity = "sm_activity_ratio";
inline constexpr std::string_view kMemoryUtilisation = "memory_utilisation_ratio";
inline constexpr std::string_view kEncoderUtilisation = "encoder_utilisation_ratio";
inline constexpr std::string_view kDecoderUtilisation = "decoder_utilisation_ratio";
inline constexpr std::string_view kJpegUtilisation = "jpeg_utilisation_ratio";
inline constexpr std::string_view kOfaUtilisation = "ofa_utilisation_ratio";
inline constexpr std::string_view kMemoryUsed = "memory_used_bytes";
inline constexpr std::string_view kPowerLimit = "power_limit_watts";
inline constexpr std::string_view kFanSpeed = "fan_speed_ratio";               // of the greatest
inline constexpr std::string_view kClockEventReasons = "clock_event_reasons";  // ClockReasons
// Processes that hold a context on a GPU, as its driver lists them to the tool: in a container it
// may leave out those of other containers.
inline constexpr std::string_view kProcessCount = "process_count";
inline constexpr std::string_view kCpuUtilisation = "cpu_utilisation_ratio";  // of all logical CPUs

}  // namespace gauge

// Why a GPU runs at lower clocks than its maximum. The values are bits of the gauge
// `clock_event_reasons` in a recording (src/recording/FORMAT.md): they never change. A meter
// translates its vendor's reasons into them.
enum class ClockReason : std::uint32_t {
  kIdle = 0x1,
  kApplicationClocks = 0x2,  // a user set lower clocks
  kPowerLimit = 0x4,
  kHardwareSlowdown = 0x8,  // the hardware's own protection: heat or its power brake
  kSyncBoost = 0x10,        // held at the clocks of a group of GPUs
  kThermalLimit = 0x20,
  kHardwareThermal = 0x40,
  kPowerBrake = 0x80,  // of the power supply or the board
  kDisplayClocks = 0x100,
};

inline constexpr Names<ClockReason, 9> kClockReasons{
    {{ClockReason::kIdle, "idle"},
     {ClockReason::kApplicationClocks, "clock_setting"},
     {ClockReason::kPowerLimit, "power_limit"},
     {ClockReason::kHardwareSlowdown, "hardware_slowdown"},
     {ClockReason::kSyncBoost, "sync_boost"},
     {ClockReason::kThermalLimit, "software_thermal"},
     {ClockReason::kHardwareThermal, "hardware_thermal"},
     {ClockReason::kPowerBrake, "power_brake"},
     {ClockReason::kDisplayClocks, "display_clock"}}};

class ClockReasons {
 public:
  constexpr ClockReasons() = default;
  constexpr ClockReasons(std::initializer_list<ClockReason> reasons) {
    for (const ClockReason reason : reasons) add(reason);
  }

  // `value`: of the gauge. A negative value or NaN holds no reason.
  static constexpr ClockReasons of_gauge(double value) {
    ClockReasons reasons;
    if (value >= 0 && value < 0x1p32) reasons.bits_ = static_cast<std::uint32_t>(value);
    return reasons;
  }
  static constexpr ClockReasons all() { return of_gauge(0x1ff); }
  constexpr double gauge() const { return bits_; }

  constexpr void add(ClockReason reason) { bits_ |= static_cast<std::uint32_t>(reason); }
  constexpr bool has(ClockReason reason) const {
    return (bits_ & static_cast<std::uint32_t>(reason)) != 0;
  }

  constexpr bool limited_by_power() const {
    return has(ClockReason::kPowerLimit) || has(ClockReason::kPowerBrake);
  }
  constexpr bool thermal() const {
    return has(ClockReason::kThermalLimit) || has(ClockReason::kHardwareThermal);
  }
  // A hardware slowdown without the power brake is counted as thermal.
  constexpr bool limited_by_heat() const {
    return thermal() || (has(ClockReason::kHardwareSlowdown) && !has(ClockReason::kPowerBrake));
  }

  // In the words of all outputs: "power_limit", ...
  std::vector<std::string_view> names() const {
    std::vector<std::string_view> names;
    for (const auto& [reason, name] : kClockReasons) {
      if (has(reason)) names.push_back(name);
    }
    return names;
  }

 private:
  std::uint32_t bits_ = 0;
};

// --- Raw sensor values on the host's timeline, as they were read ---

// One read of an energy counter: somewhere between `before` and `after` it stood at `total`.
struct CounterReading {
  SensorId sensor{};
  HostTime before{};
  HostTime after{};
  Energy total;  // raw: not unwrapped, not rebased

  bool operator==(const CounterReading&) const = default;
};

// One power value. `at` is the sensor's own stamp where it gives one, else when it was read.
struct PowerReading {
  SensorId sensor{};
  HostTime at{};
  Power power;

  bool operator==(const PowerReading&) const = default;
};

struct GaugeReading {
  SensorId sensor{};
  HostTime at{};
  double value = 0;

  bool operator==(const GaugeReading&) const = default;
};

// A read that failed. What it would have said is absent; why is kept.
struct ReadFailure {
  SensorId sensor{};
  HostTime at{};
  Error error;

  bool operator==(const ReadFailure&) const = default;
};

// A load was on without a pause.
struct BusySpan {
  HostTime begin{};
  HostTime end{};
};

// Readings in the order they came.
struct Readings {
  std::vector<CounterReading> counters;
  std::vector<PowerReading> powers;
  std::vector<GaugeReading> gauges;
  std::vector<ReadFailure> failures;

  bool empty() const {
    return counters.empty() && powers.empty() && gauges.empty() && failures.empty();
  }
  void clear() {
    counters.clear();
    powers.clear();
    gauges.clear();
    failures.clear();
  }
  bool operator==(const Readings&) const = default;
};

// Moves what has a meter's own numbers to others', which `map` has by these; what has none is left
// out.
template <typename T, typename Id>
void move_renumbered(std::vector<T>& from, std::vector<T>& to, Id T::*id,
                     const std::vector<std::optional<Id>>& map) {
  for (auto& item : from) {
    const auto own = static_cast<std::size_t>(item.*id);
    if (own >= map.size() || !map[own]) continue;
    item.*id = *map[own];
    to.push_back(std::move(item));
  }
}
inline void move_renumbered(Readings& from, Readings& to,
                            const std::vector<std::optional<SensorId>>& map) {
  move_renumbered(from.counters, to.counters, &CounterReading::sensor, map);
  move_renumbered(from.powers, to.powers, &PowerReading::sensor, map);
  move_renumbered(from.gauges, to.gauges, &GaugeReading::sensor, map);
  move_renumbered(from.failures, to.failures, &ReadFailure::sensor, map);
}

}  // namespace jouleprof::model
