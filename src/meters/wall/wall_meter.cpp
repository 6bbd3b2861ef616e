#include "meters/wall/wall_meter.h"

#include <algorithm>
#include <utility>

namespace jouleprof::meters {

WallMeter::WallMeter(WallSpec spec, std::unique_ptr<WallSource> source)
    : spec_(std::move(spec)), source_(std::move(source)) {}

Result<std::unique_ptr<WallMeter>> WallMeter::open(const WallOptions& options) {
  auto spec = parse_wall_spec(options.spec);
  if (!spec) return forward_error(spec);
  auto source = open_wall_source(*spec);
  if (!source) return forward_error(source);
  const auto first = (*source)->read();
  if (!first) return forward_error(first);

  std::unique_ptr<WallMeter> meter(new WallMeter(std::move(*spec), std::move(*source)));
  model::Domain domain;
  domain.kind = model::DomainKind::kPlatform;
  domain.device = options.device;
  domain.name = "Wall meter (" + meter->spec_.name() + ")";
  meter->domains_.push_back(std::move(domain));
  model::Sensor sensor;
  sensor.kind = model::SensorKind::kPowerAverage;
  sensor.name = "wall:" + meter->spec_.name();
  sensor.traits.window = meter->spec_.mean_over ? meter->spec_.mean_over : first->mean_over;
  sensor.traits.scale = model::ScaleError::symmetric(meter->spec_.gain_error);
  meter->sensors_.push_back(std::move(sensor));
  meter->probes_.push_back({"wall meter", {}, {meter->sensors_.front().id}});
  meter->set_demand(options.demand);
  return meter;
}

void WallMeter::set_demand(const Demand& demand) {
  probes_.front().period = std::max(spec_.every, demand.poll_period);
}

HostTime WallMeter::read(std::size_t, model::Readings& out) {
  const HostTime before = HostClock::now();
  auto reading = source_->read();
  const HostTime after = HostClock::now();
  const auto sensor = sensors_.front().id;
  if (reading) {
    out.powers.push_back({sensor, before + (after - before) / 2, reading->power});
  } else {
    out.failures.push_back({sensor, after, std::move(reading.error())});
  }
  return std::max(before + probes_.front().period, after);
}

}  // namespace jouleprof::meters
