#include "report/snapshot.h"

#include <array>
#include <cmath>

#include "model/device/sensor.h"

namespace jouleprof::report {
namespace {

namespace gauge = model::gauge;

constexpr std::string_view kPower = "power_watts";
constexpr std::string_view kUtilisation = "utilisation_ratio";
constexpr std::string_view kThermalViolation = "thermal_violation";

std::optional<model::ClockReasons> clock_reasons_of(const model::DomainSnapshot& domain) {
  const auto bits = domain.gauge(gauge::kClockEventReasons);
  return bits ? std::optional(model::ClockReasons::of_gauge(*bits)) : std::nullopt;
}

std::optional<double> any_figure_of(const model::DomainSnapshot& domain, std::string_view name) {
  if (name == kPower) {
    return domain.power ? std::optional(domain.power->watts()) : std::nullopt;
  }
  if (name == kUtilisation) {
    const auto of_gpu = domain.gauge(gauge::kGpuUtilisation);
    return of_gpu ? of_gpu : domain.gauge(gauge::kCpuUtilisation);
  }
  if (name == kThermalViolation) {
    const auto reasons = clock_reasons_of(domain);
    return reasons ? std::optional(reasons->limited_by_heat() ? 1.0 : 0.0) : std::nullopt;
  }
  return domain.gauge(name);
}

}  // namespace

std::span<const std::string_view> snapshot_figures() {
  static constexpr std::array kNames{kPower,
                                     gauge::kPowerLimit,
                                     gauge::kTemperature,
                                     gauge::kMemoryTemperature,
                                     gauge::kFanSpeed,
                                     kUtilisation,
                                     gauge::kMemoryUtilisation,
                                     gauge::kEncoderUtilisation,
                                     gauge::kDecoderUtilisation,
                                     gauge::kJpegUtilisation,
                                     gauge::kOfaUtilisation,
                                     gauge::kSmClock,
                                     gauge::kMemoryClock,
                                     kThermalViolation,
                                     gauge::kMemoryUsed};
  return kNames;
}

std::optional<double> figure_of(const model::DomainSnapshot& domain, std::string_view name) {
  const auto value = any_figure_of(domain, name);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::vector<std::string_view>> clock_limits_of(const model::DomainSnapshot& domain) {
  const auto reasons = clock_reasons_of(domain);
  if (!reasons) return std::nullopt;
  return reasons->names();
}

std::vector<const model::DomainSnapshot*> rows_of(const model::Snapshot& snapshot) {
  std::vector<const model::DomainSnapshot*> rows;
  for (const auto& d : snapshot.domains) {
    const bool has_sensor = d.provenance != model::Provenance::kUnavailable || !d.gauges.empty();
    if (has_sensor && !d.domain.parent && d.domain.unavailable_reason.empty()) rows.push_back(&d);
  }
  return rows;
}

}  // namespace jouleprof::report
