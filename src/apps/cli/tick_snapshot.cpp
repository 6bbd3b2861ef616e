#include "apps/cli/tick_snapshot.h"

#include <algorithm>

#include "base/text.h"
#include "model/clock_reasons.h"
#include "model/gauge_names.h"

namespace jouleprof::cli {
namespace {

using report::DeviceSnapshot;
namespace gauge = model::gauge;

void set(DeviceSnapshot& device, const std::string& name, double value) {
  static const std::map<std::string_view, std::optional<double> DeviceSnapshot::*> kFields{
      {gauge::kSmClock, &DeviceSnapshot::sm_clock_hertz},
      {gauge::kMemoryClock, &DeviceSnapshot::memory_clock_hertz},
      {gauge::kTemperature, &DeviceSnapshot::temperature_celsius},
      {gauge::kMemoryTemperature, &DeviceSnapshot::memory_temperature_celsius},
      {gauge::kGpuUtilisation, &DeviceSnapshot::utilisation_ratio},
      {gauge::kCpuUtilisation, &DeviceSnapshot::utilisation_ratio},
      {gauge::kMemoryUtilisation, &DeviceSnapshot::memory_utilisation_ratio},
      {gauge::kEncoderUtilisation, &DeviceSnapshot::encoder_utilisation_ratio},
      {gauge::kDecoderUtilisation, &DeviceSnapshot::decoder_utilisation_ratio},
      {gauge::kJpegUtilisation, &DeviceSnapshot::jpeg_utilisation_ratio},
      {gauge::kOfaUtilisation, &DeviceSnapshot::ofa_utilisation_ratio},
      {gauge::kMemoryUsed, &DeviceSnapshot::memory_used_bytes},
      {gauge::kPowerLimit, &DeviceSnapshot::power_limit_watts}};
  if (name == gauge::kClockEventReasons) {
    device.thermal_violation = model::ClockReasons::of_gauge(value).thermal() ? 1 : 0;
  } else if (const auto field = kFields.find(name); field != kFields.end()) {
    device.*(field->second) = value;
  }
}

std::optional<unsigned> gpu_index(const model::Domain& domain) {
  constexpr std::string_view kPrefix = "gpu";
  if (domain.kind != model::DomainKind::kGpu || !domain.device.starts_with(kPrefix)) return {};
  const auto index = parse_integer(std::string_view(domain.device).substr(kPrefix.size()));
  return index ? std::optional(static_cast<unsigned>(*index)) : std::nullopt;
}

}  // namespace

void TickSnapshot::add_machine(const std::vector<model::MachineReading>& readings) {
  for (const auto& now : readings) {
    const auto ratio = machine_ ? report::busy_ratio(*machine_, now) : std::nullopt;
    if (ratio) busy_ = {*ratio, now.at};
    machine_ = now;
  }
}

report::Snapshot TickSnapshot::take(const session::Tick& tick) {
  constexpr Duration kStale = std::chrono::seconds{10};
  if (!power_) {
    power_ = std::make_unique<session::LivePower>(tick.sensors);
    begin_ = tick.begin;
  }
  power_->add(tick.readings);
  add_machine(tick.process_readings.machine);
  for (const auto& reading : tick.readings.gauges) {
    gauges_[reading.sensor] = {reading.value, reading.at};
  }

  const auto packages = std::count_if(
      tick.domains.begin(), tick.domains.end(),
      [](const model::Domain& d) { return d.kind == model::DomainKind::kCpu && !d.parent; });

  report::Snapshot snapshot;
  const ClockPoint now = ClockPoint::now();
  snapshot.time = now.real - (now.host - tick.end);
  snapshot.elapsed = tick.end - begin_;
  for (const auto& domain : tick.domains) {
    // Memory within a GPU, cores within a package and the like have rows of their own in a report.
    if (domain.parent || !domain.unavailable_reason.empty()) continue;
    DeviceSnapshot device;
    device.kind = domain.kind;
    device.device = domain.device;
    device.index = gpu_index(domain);
    device.name = domain.name;
    if (const auto power = power_->of(domain.id, tick.end)) device.power_watts = power->watts();
    bool has_sensor = false;
    for (const auto& sensor : tick.sensors) {
      if (sensor.domain != domain.id) continue;
      has_sensor = true;
      if (sensor.kind != model::SensorKind::kGauge) {
        device.provenance = model::combine(sensor.provenance, model::Provenance::kUnavailable);
      }
      const auto gauge = gauges_.find(sensor.id);
      if (gauge != gauges_.end() && tick.end - gauge->second.at < kStale) {
        set(device, sensor.name, gauge->second.value);
      }
    }
    if (domain.kind == model::DomainKind::kCpu && packages == 1 && !device.utilisation_ratio &&
        busy_ && tick.end - busy_->at < kStale) {
      device.utilisation_ratio = busy_->value;
    }
    if (has_sensor) snapshot.devices.push_back(std::move(device));
  }
  return snapshot;
}

}  // namespace jouleprof::cli
