// Names of the recorded quantities other than power. A name ends with its SI unit, if it has one.
#pragma once

#include <string_view>

namespace jouleprof::model::gauge {

inline constexpr std::string_view kSmClock = "sm_clock_hertz";
inline constexpr std::string_view kMemoryClock = "memory_clock_hertz";
inline constexpr std::string_view kTemperature = "temperature_celsius";
inline constexpr std::string_view kMemoryTemperature = "memory_temperature_celsius";
inline constexpr std::string_view kGpuUtilisation = "gpu_utilisation_ratio";
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
