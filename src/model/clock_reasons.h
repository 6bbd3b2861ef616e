// Why a GPU's clocks are lower than they could be: the bits of gauge::kClockEventReasons.
// Recordings hold these bits; a meter translates its driver's into them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace jouleprof::model {

inline constexpr std::uint64_t kIdleClocks = 0x1;
inline constexpr std::uint64_t kClockSetting = 0x2;
inline constexpr std::uint64_t kSwPowerCap = 0x4;
inline constexpr std::uint64_t kHwSlowdown = 0x8;
inline constexpr std::uint64_t kSyncBoost = 0x10;
inline constexpr std::uint64_t kSwThermal = 0x20;
inline constexpr std::uint64_t kHwThermal = 0x40;
inline constexpr std::uint64_t kHwPowerBrake = 0x80;
inline constexpr std::uint64_t kDisplayClocks = 0x100;

inline bool held_by_power(std::uint64_t reasons) {
  return (reasons & (kSwPowerCap | kHwPowerBrake)) != 0;
}

// A hardware slowdown that is not the power brake's is counted as heat's.
inline bool held_by_heat(std::uint64_t reasons) {
  return (reasons & (kSwThermal | kHwThermal)) != 0 ||
         ((reasons & kHwSlowdown) != 0 && (reasons & kHwPowerBrake) == 0);
}

// The names that outputs give the bits; a bit without a name is left out.
inline std::vector<std::string_view> clock_reason_names(std::uint64_t reasons) {
  constexpr std::array<std::pair<std::uint64_t, std::string_view>, 9> kNames{
      {{kIdleClocks, "idle"},
       {kClockSetting, "clock_setting"},
       {kSwPowerCap, "power_limit"},
       {kHwSlowdown, "hardware_slowdown"},
       {kSyncBoost, "sync_boost"},
       {kSwThermal, "software_thermal"},
       {kHwThermal, "hardware_thermal"},
       {kHwPowerBrake, "power_brake"},
       {kDisplayClocks, "display_clock"}}};
  std::vector<std::string_view> names;
  for (const auto& [bit, name] : kNames) {
    if ((reasons & bit) != 0) names.push_back(name);
  }
  return names;
}

}  // namespace jouleprof::model
