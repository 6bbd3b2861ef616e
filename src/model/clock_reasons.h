// What keeps a GPU's clocks down against the work's interest: bits of gauge::kClockEventReasons
// (nvml.h, nvmlClocksEventReasons).
#pragma once

#include <cstdint>

namespace jouleprof::model {

inline constexpr std::uint64_t kSwPowerCap = 0x4;
inline constexpr std::uint64_t kHwSlowdown = 0x8;
inline constexpr std::uint64_t kSwThermal = 0x20;
inline constexpr std::uint64_t kHwThermal = 0x40;
inline constexpr std::uint64_t kHwPowerBrake = 0x80;

inline bool held_by_power(std::uint64_t reasons) {
  return (reasons & (kSwPowerCap | kHwPowerBrake)) != 0;
}

// A hardware slowdown that is not the power brake's is counted as heat's.
inline bool held_by_heat(std::uint64_t reasons) {
  return (reasons & (kSwThermal | kHwThermal)) != 0 ||
         ((reasons & kHwSlowdown) != 0 && (reasons & kHwPowerBrake) == 0);
}

}  // namespace jouleprof::model
