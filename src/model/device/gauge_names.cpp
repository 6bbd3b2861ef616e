#include "model/device/gauge_names.h"

#include <utility>

namespace jouleprof::model {

std::vector<std::string_view> ClockReasons::names() const {
  using enum ClockReason;
  constexpr std::array<std::pair<ClockReason, std::string_view>, 9> kNames{
      {{kIdle, "idle"},
       {kApplicationClocks, "clock_setting"},
       {kPowerLimit, "power_limit"},
       {kHardwareSlowdown, "hardware_slowdown"},
       {kSyncBoost, "sync_boost"},
       {kThermalLimit, "software_thermal"},
       {kHardwareThermal, "hardware_thermal"},
       {kPowerBrake, "power_brake"},
       {kDisplayClocks, "display_clock"}}};
  std::vector<std::string_view> names;
  for (const auto& [reason, name] : kNames) {
    if (has(reason)) names.push_back(name);
  }
  return names;
}

}  // namespace jouleprof::model
