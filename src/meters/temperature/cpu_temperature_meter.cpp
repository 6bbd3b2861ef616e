#include "meters/temperature/cpu_temperature_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "meters/temperature/cpu_temperature.h"
#include "model/device/gauge_names.h"

namespace jouleprof::meters {
namespace {

constexpr Duration kUsualPeriod = std::chrono::milliseconds{900};
constexpr Duration kShortestPeriod = std::chrono::milliseconds{100};

Duration period_of(const Demand& demand) {
  return demand.state_period > Duration{} ? std::max(demand.state_period, kShortestPeriod)
                                          : kUsualPeriod;
}

// "package-1-die-0" is of package 1.
bool is_of(const model::Domain& domain, int package) {
  const std::string name = fmt::format("package-{}", package);
  return domain.device == name || domain.device.starts_with(name + "-");
}

using Files = std::vector<std::filesystem::path>;

class CpuTemperatureMeter : public Meter {
 public:
  CpuTemperatureMeter(std::unique_ptr<Meter> inner, Duration period) : inner_(std::move(inner)) {
    domains_ = inner_->domains();
    sensors_ = inner_->sensors();
    missing_ = inner_->missing();
    probes_ = inner_->probes();
    // No sensors means any sensor, of which there will be others.
    for (Probe& probe : probes_) {
      if (!probe.sensors.empty()) continue;
      for (const auto& sensor : sensors_) probe.sensors.push_back(sensor.id);
    }
    probes_.push_back({"CPU temperature", period});
  }

  void add(model::DomainId domain, Files files) {
    model::Sensor sensor;
    sensor.id = model::SensorId{static_cast<std::uint32_t>(sensors_.size())};
    sensor.domain = domain;
    sensor.kind = model::SensorKind::kGauge;
    sensor.name = std::string(model::gauge::kTemperature);
    probes_.back().sensors.push_back(sensor.id);
    gauges_.push_back({sensor.id, std::move(files)});
    sensors_.push_back(std::move(sensor));
  }

  std::string name() const override { return inner_->name(); }

  HostTime read(std::size_t index, model::Readings& out) override {
    if (index + 1 < probes_.size()) return inner_->read(index, out);
    const HostTime begin = HostClock::now();
    for (const Gauge& gauge : gauges_) read(gauge, out);
    return begin + probes_.back().period;
  }

  void set_demand(const Demand& demand) override {
    inner_->set_demand(demand);
    for (std::size_t i = 0; i + 1 < probes_.size(); ++i) {
      probes_[i].period = inner_->probes()[i].period;
    }
    probes_.back().period = period_of(demand);
  }

  std::vector<std::string> take_notices() override { return inner_->take_notices(); }

  std::optional<Result<std::vector<model::GpuProcessUse>>> read_processes(
      model::Readings& out) override {
    return inner_->read_processes(out);
  }

 private:
  struct Gauge {
    model::SensorId sensor{};
    Files files;
  };

  // The hottest is known only where all answer.
  static void read(const Gauge& gauge, model::Readings& out) {
    std::optional<double> hottest;
    for (const auto& file : gauge.files) {
      auto celsius = read_celsius(file);
      if (!celsius) {
        out.failures.push_back({gauge.sensor, HostClock::now(), std::move(celsius.error())});
        return;
      }
      hottest = std::max(hottest.value_or(*celsius), *celsius);
    }
    if (hottest) out.gauges.push_back({gauge.sensor, HostClock::now(), *hottest});
  }

  std::unique_ptr<Meter> inner_;
  std::vector<Gauge> gauges_;
};

}  // namespace

std::unique_ptr<Meter> with_cpu_temperatures(std::unique_ptr<Meter> meter,
                                             const CpuTemperatureOptions& options) {
  std::vector<std::pair<model::DomainId, Files>> found;
  std::vector<CpuTemperature> chips;
  for (const auto& chip : find_cpu_temperatures(options.root)) {
    if (read_celsius(chip.file)) chips.push_back(chip);
  }
  for (const auto& domain : meter->domains()) {
    if (domain.kind != model::DomainKind::kCpu || domain.parent) continue;
    const auto& sensors = meter->sensors();
    const bool is_estimate = std::any_of(sensors.begin(), sensors.end(), [&](const auto& s) {
      return s.domain == domain.id && s.provenance == model::Provenance::kEstimated;
    });
    Files files;
    for (const auto& chip : chips) {
      if (is_estimate || (chip.package && is_of(domain, *chip.package))) files.push_back(chip.file);
    }
    if (!files.empty()) found.emplace_back(domain.id, std::move(files));
  }
  if (found.empty()) return meter;
  auto out = std::make_unique<CpuTemperatureMeter>(std::move(meter), period_of(options.demand));
  for (auto& [domain, files] : found) out->add(domain, std::move(files));
  return out;
}

}  // namespace jouleprof::meters
