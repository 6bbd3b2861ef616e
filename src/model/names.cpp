// The words for the values of enumerations, both ways.
#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "model/device/gauge_names.h"
#include "model/device/sensor.h"
#include "model/domain.h"

namespace jouleprof::model {
namespace {

template <class Enum, std::size_t kCount>
using Names = std::array<std::pair<Enum, std::string_view>, kCount>;

template <class Enum, std::size_t kCount>
std::string_view name_in(const Names<Enum, kCount>& names, Enum value, std::string_view otherwise) {
  const auto found =
      std::find_if(names.begin(), names.end(), [value](const auto& n) { return n.first == value; });
  return found == names.end() ? otherwise : found->second;
}

template <class Enum, std::size_t kCount>
std::optional<Enum> value_in(const Names<Enum, kCount>& names, std::string_view name) {
  const auto found =
      std::find_if(names.begin(), names.end(), [name](const auto& n) { return n.second == name; });
  return found == names.end() ? std::nullopt : std::optional(found->first);
}

constexpr Names<DomainKind, 8> kDomainKinds{{{DomainKind::kGpu, "gpu"},
                                             {DomainKind::kCpu, "cpu"},
                                             {DomainKind::kDram, "dram"},
                                             {DomainKind::kGpuMemory, "gpu_memory"},
                                             {DomainKind::kCpuCores, "cpu_cores"},
                                             {DomainKind::kCpuUncore, "cpu_uncore"},
                                             {DomainKind::kPlatform, "platform"},
                                             {DomainKind::kModule, "module"}}};
constexpr Names<SensorKind, 5> kSensorKinds{{{SensorKind::kEnergyCounter, "energy_counter"},
                                             {SensorKind::kPowerRing, "power_ring"},
                                             {SensorKind::kPowerInstant, "power_instant"},
                                             {SensorKind::kPowerAverage, "power_average"},
                                             {SensorKind::kGauge, "gauge"}}};
constexpr Names<Provenance, 4> kProvenances{{{Provenance::kMeasured, "measured"},
                                             {Provenance::kEstimated, "estimated"},
                                             {Provenance::kSimulated, "simulated"},
                                             {Provenance::kUnavailable, "unavailable"}}};
constexpr Names<ClockReason, 9> kClockReasons{
    {{ClockReason::kIdle, "idle"},
     {ClockReason::kApplicationClocks, "clock_setting"},
     {ClockReason::kPowerLimit, "power_limit"},
     {ClockReason::kHardwareSlowdown, "hardware_slowdown"},
     {ClockReason::kSyncBoost, "sync_boost"},
     {ClockReason::kThermalLimit, "software_thermal"},
     {ClockReason::kHardwareThermal, "hardware_thermal"},
     {ClockReason::kPowerBrake, "power_brake"},
     {ClockReason::kDisplayClocks, "display_clock"}}};

}  // namespace

std::string_view to_string(DomainKind kind) { return name_in(kDomainKinds, kind, "unknown"); }
std::optional<DomainKind> parse_domain_kind(std::string_view text) {
  return value_in(kDomainKinds, text);
}

std::string_view to_string(SensorKind kind) { return name_in(kSensorKinds, kind, "unknown"); }
std::optional<SensorKind> parse_sensor_kind(std::string_view text) {
  return value_in(kSensorKinds, text);
}

std::string_view to_string(Provenance p) { return name_in(kProvenances, p, "unavailable"); }
std::optional<Provenance> parse_provenance(std::string_view text) {
  return value_in(kProvenances, text);
}

Provenance combine(Provenance a, Provenance b) {
  for (const auto p : {Provenance::kSimulated, Provenance::kEstimated, Provenance::kMeasured}) {
    if (a == p || b == p) return p;
  }
  return Provenance::kUnavailable;
}

std::vector<std::string_view> ClockReasons::names() const {
  std::vector<std::string_view> names;
  for (const auto& [reason, name] : kClockReasons) {
    if (has(reason)) names.push_back(name);
  }
  return names;
}

std::optional<unsigned> gpu_index(const Domain& domain) {
  constexpr std::string_view kPrefix = "gpu";
  const std::string_view device = domain.device;
  if (domain.kind != DomainKind::kGpu || domain.parent || !device.starts_with(kPrefix)) return {};
  const auto index = parse_integer(device.substr(kPrefix.size()));
  return index ? std::optional(static_cast<unsigned>(*index)) : std::nullopt;
}

}  // namespace jouleprof::model
