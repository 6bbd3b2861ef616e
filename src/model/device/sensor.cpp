#include "model/device/sensor.h"

#include <array>
#include <utility>

namespace jouleprof::model {
namespace {

constexpr std::array<std::pair<SensorKind, std::string_view>, 5> kNames{{
    {SensorKind::kEnergyCounter, "energy_counter"},
    {SensorKind::kPowerRing, "power_ring"},
    {SensorKind::kPowerInstant, "power_instant"},
    {SensorKind::kPowerAverage, "power_average"},
    {SensorKind::kGauge, "gauge"},
}};

}  // namespace

std::string_view to_string(SensorKind kind) {
  for (const auto& [k, name] : kNames) {
    if (k == kind) return name;
  }
  return "unknown";
}

std::optional<SensorKind> parse_sensor_kind(std::string_view text) {
  for (const auto& [kind, name] : kNames) {
    if (name == text) return kind;
  }
  return std::nullopt;
}

}  // namespace jouleprof::model
