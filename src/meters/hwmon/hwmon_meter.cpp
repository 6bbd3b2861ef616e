#include "meters/hwmon/hwmon_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace jouleprof::meters {
namespace {

using hwmon::Channel;
using hwmon::Form;
using std::chrono::milliseconds;

// An average over no more than this is as good as an instant value.
constexpr Duration kLongestInstant = milliseconds{200};

std::optional<Duration> milliseconds_of(const Channel& channel, const std::string& attribute) {
  const auto value = hwmon::read_setting(channel, attribute);
  if (!value || *value <= 0 || *value > 3'600'000) return std::nullopt;
  return milliseconds{*value};
}

void set_traits(const Channel& channel, model::Sensor& sensor) {
  model::SensorTraits& traits = sensor.traits;
  switch (channel.form) {
    case Form::kEnergyInput:
      sensor.kind = model::SensorKind::kEnergyCounter;
      return;
    case Form::kPowerInput:
      sensor.kind = model::SensorKind::kPowerInstant;
      return;
    case Form::kVoltageCurrent:
      sensor.kind = model::SensorKind::kPowerInstant;
      traits.refresh = milliseconds_of(channel, "update_interval");
      traits.window = traits.refresh;
      return;
    case Form::kPowerAverage:
      traits.window = milliseconds_of(channel, channel.input() + "_average_interval");
      sensor.kind = traits.window && *traits.window <= kLongestInstant
                        ? model::SensorKind::kPowerInstant
                        : model::SensorKind::kPowerAverage;
  }
}

Duration poll_period(const model::Sensor& sensor, const Demand& demand) {
  if (demand.poll_period > Duration::zero()) return demand.poll_period;
  if (sensor.kind == model::SensorKind::kPowerAverage) {
    const Duration window = sensor.traits.window.value_or(std::chrono::seconds{1});
    return std::clamp<Duration>(window / 2, milliseconds{100}, std::chrono::seconds{1});
  }
  Duration period = milliseconds{100};
  if (demand.shortest_window < std::chrono::seconds{1}) {
    period = sensor.kind == model::SensorKind::kEnergyCounter ? milliseconds{10} : milliseconds{20};
  }
  return std::max(period, sensor.traits.refresh.value_or(Duration::zero()));
}

}  // namespace

Result<std::unique_ptr<HwmonMeter>> HwmonMeter::open(const HwmonOptions& options) {
  const auto found = hwmon::find_channels(options.root);
  std::vector<Channel> channels = found.value_or(std::vector<Channel>{});
  channels.erase(std::remove_if(channels.begin(), channels.end(), hwmon::is_uninteresting),
                 channels.end());
  if (channels.empty()) {
    return fail(Errc::kNotFound, fmt::format("no power or energy sensor in {}",
                                             (options.root / "sys/class/hwmon").string()));
  }

  std::unique_ptr<HwmonMeter> meter(new HwmonMeter);
  // First the domains, wholes before parts; a whole exists even where its sensor does not answer.
  std::vector<std::pair<Channel, hwmon::Role>> known;
  for (const Channel& channel : channels) {
    auto role = hwmon::role_of(channel, channels);
    if (role) {
      known.emplace_back(channel, std::move(*role));
    } else {
      meter->missing_.push_back({channel.sensor_name(), std::move(role.error()), ""});
    }
  }
  std::stable_partition(known.begin(), known.end(),
                        [](const auto& entry) { return !entry.second.parent_kind; });
  for (const auto& [channel, role] : known) {
    model::Domain& domain = meter->get_domain(role, channel);
    const bool switched_off = hwmon::is_switched_off(channel);
    const auto value = hwmon::read_channel(channel);
    if (!switched_off && value) {
      domain.unavailable_reason.clear();
      meter->add_sensor(channel, domain.id, options.demand);
      continue;
    }
    Missing missing{channel.sensor_name(), {}, ""};
    if (switched_off) {
      const auto file = (channel.folder / (channel.input() + "_enable")).string();
      missing.error = {Errc::kUnavailable, fmt::format("it is switched off ({} is 0)", file)};
      missing.fix = fmt::format("echo 1 | sudo tee {}", file);
    } else {
      missing.error = value.error();
    }
    const bool has_sensor =
        std::any_of(meter->sensors_.begin(), meter->sensors_.end(),
                    [&](const model::Sensor& s) { return s.domain == domain.id; });
    if (!has_sensor) domain.unavailable_reason = missing.error.message;
    meter->missing_.push_back(std::move(missing));
  }
  return meter;
}

model::Domain& HwmonMeter::get_domain(const hwmon::Role& role, const Channel& channel) {
  const std::string owner = channel.bus_address + "/" + channel.input();
  std::string device = role.device;
  for (std::size_t i = 0; i < domains_.size(); ++i) {
    if (domains_[i].kind != role.kind || domains_[i].device != device) continue;
    if (owners_[i] == owner) return domains_[i];
    // Two chips with one label are two things.
    device = fmt::format("{}@{}", role.device, owner);
  }
  model::Domain domain;
  domain.id = model::DomainId{static_cast<std::uint32_t>(domains_.size())};
  domain.kind = role.kind;
  domain.device = device;
  domain.name = role.name;
  for (const model::Domain& whole : domains_) {
    if (role.parent_kind == whole.kind && role.parent_device == whole.device) {
      domain.parent = whole.id;
    }
  }
  domains_.push_back(std::move(domain));
  owners_.push_back(owner);
  return domains_.back();
}

void HwmonMeter::add_sensor(const Channel& channel, model::DomainId domain, const Demand& demand) {
  model::Sensor sensor;
  sensor.id = model::SensorId{static_cast<std::uint32_t>(sensors_.size())};
  sensor.domain = domain;
  sensor.name = channel.sensor_name();
  set_traits(channel, sensor);
  probes_.push_back({fmt::format("{} of {}", channel.sensor_name(), channel.bus_address),
                     poll_period(sensor, demand),
                     {sensor.id}});
  sensors_.push_back(std::move(sensor));
  channels_.push_back(channel);
}

void HwmonMeter::set_demand(const Demand& demand) {
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    probes_[i].period = poll_period(sensors_[i], demand);
  }
}

HostTime HwmonMeter::read(std::size_t index, model::Readings& out) {
  const model::Sensor& sensor = sensors_.at(index);
  const HostTime before = HostClock::now();
  auto value = hwmon::read_channel(channels_[index]);
  const HostTime after = HostClock::now();
  if (!value) {
    out.failures.push_back({sensor.id, after, std::move(value.error())});
  } else if (sensor.kind == model::SensorKind::kEnergyCounter) {
    out.counters.push_back({sensor.id, before, after, Energy::microjoules(*value)});
  } else {
    out.powers.push_back({sensor.id, before + (after - before) / 2,
                          Power::watts(static_cast<double>(*value) * 1e-6)});
  }
  return before + probes_[index].period;
}

}  // namespace jouleprof::meters
