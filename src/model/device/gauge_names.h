// Names of the recorded quantities other than power. A name ends with its SI unit, if it has one.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace jouleprof::model::gauge {

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
inline constexpr std::string_view kClockEventReasons = "clock_event_reasons";  // clock_reasons.h
// Processes that hold a context on a GPU, as its driver lists them to the tool: in a container it
// may leave out those of other containers.
inline constexpr std::string_view kProcessCount = "process_count";
inline constexpr std::string_view kCpuUtilisation = "cpu_utilisation_ratio";  // of all logical CPUs

}  // namespace jouleprof::model::gauge

namespace jouleprof::model {

// Why a GPU runs at lower clocks than its maximum.

// The values are bits of the gauge `clock_event_reasons` in a recording (src/recording/FORMAT.md):
// they never change. A meter translates its vendor's reasons into them.
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
  std::vector<std::string_view> names() const;

 private:
  std::uint32_t bits_ = 0;
};

}  // namespace jouleprof::model
