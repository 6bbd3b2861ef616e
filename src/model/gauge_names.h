// Names of the recorded quantities other than power. Each name ends with its SI unit.
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
inline constexpr std::string_view kClockEventReasons = "clock_event_reasons";  // clock_reasons.h
// Processes with a context, as the driver listed them.
inline constexpr std::string_view kProcessCount = "process_count";
inline constexpr std::string_view kCpuUtilisation = "cpu_utilisation_ratio";  // of all logical CPUs

}  // namespace jouleprof::model::gauge
