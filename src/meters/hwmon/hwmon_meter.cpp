#include "meters/hwmon/hwmon_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/file.h"
#include "meters/hwmon/board.h"
#include "model/device/sensor.h"
#include "model/device/sensor_table.h"

namespace jouleprof::meters {
namespace {

using hwmon::Board;
using hwmon::Channel;
using hwmon::Form;
using model::SensorKind;
using std::chrono::milliseconds;

// An average over no more than this is as good as an instant value.
constexpr Duration kLongestInstant = milliseconds{200};
constexpr Duration kStatePeriod = milliseconds{900};
constexpr double kGoldenTurn = 0.618033988749895;  // its multiples fill a period evenly

std::optional<Duration> milliseconds_of(const Channel& channel, const std::string& attribute) {
  const auto value = hwmon::read_setting(channel, attribute);
  if (!value || *value <= 0 || *value > 3'600'000) return std::nullopt;
  return milliseconds{*value};
}

// Kind and traits of a channel's sensor.
std::pair<SensorKind, model::SensorTraits> traits_of(const Channel& channel) {
  model::SensorTraits traits;
  switch (channel.form) {
    case Form::kEnergyInput:
      return {SensorKind::kEnergyCounter, traits};
    case Form::kVoltageCurrent:
      traits.refresh = milliseconds_of(channel, "update_interval");
      traits.window = traits.refresh;
      break;
    case Form::kPowerAverage:
      traits.window = milliseconds_of(channel, channel.input() + "_average_interval");
      if (traits.window && *traits.window <= kLongestInstant) break;
      return {SensorKind::kPowerAverage, traits};
    case Form::kZonePower:
      if (const auto us = hwmon::read_setting(channel, "constraint_0_time_window_us");
          us && *us > 0) {
        traits.window = std::chrono::microseconds{*us};
      }
      if (traits.window && *traits.window <= kLongestInstant) break;
      return {SensorKind::kPowerAverage, traits};
    case Form::kPowerInput:
      break;
  }
  return {SensorKind::kPowerInstant, traits};
}

Duration poll_period(const model::Sensor& sensor, const Demand& demand) {
  if (demand.poll_period > Duration::zero()) return demand.poll_period;
  if (sensor.kind == SensorKind::kPowerAverage) {
    const Duration window = sensor.traits.window.value_or(std::chrono::seconds{1});
    return std::clamp<Duration>(window / 2, milliseconds{100}, std::chrono::seconds{1});
  }
  Duration period = milliseconds{100};
  if (demand.shortest_window < std::chrono::seconds{1}) {
    period = sensor.kind == SensorKind::kEnergyCounter ? milliseconds{10} : milliseconds{20};
  }
  return std::max(period, sensor.traits.refresh.value_or(Duration::zero()));
}

bool is_apu_domain(const model::Domain& domain) {
  return domain.kind == model::DomainKind::kModule && domain.device.starts_with("amdgpu");
}

HostTime middle(HostTime before, HostTime after) { return before + (after - before) / 2; }

void read_channel(const Channel& channel, const model::Sensor& sensor, model::Readings& out) {
  const HostTime before = HostClock::now();
  auto value = hwmon::read_channel(channel);
  const HostTime after = HostClock::now();
  if (!value) {
    out.failures.push_back({sensor.id, after, std::move(value.error())});
  } else if (sensor.kind == SensorKind::kEnergyCounter) {
    out.counters.push_back({sensor.id, before, after, Energy::microjoules(*value)});
  } else {
    out.powers.push_back(
        {sensor.id, middle(before, after), Power::watts(static_cast<double>(*value) * 1e-6)});
  }
}

// What is used of a board's table.
struct MetricsSensors {
  std::filesystem::path file;
  std::optional<model::SensorId> counter;
  std::optional<model::SensorId> power;
  hwmon::CountUnit unit = hwmon::CountUnit::kUndocumented;
  std::string version = {};
};

void read_metrics(const MetricsSensors& sensors, model::Readings& out) {
  const HostTime before = HostClock::now();
  const auto table = read_file(sensors.file);
  const HostTime after = HostClock::now();
  auto metrics = table ? hwmon::parse_gpu_metrics(*table) : forward_error(table);
  // Another version may count in another unit.
  if (metrics && metrics->version() != sensors.version) {
    metrics = fail(Errc::kUnavailable,
                   fmt::format("{} changed from {} to {}: the driver or the firmware was replaced",
                               sensors.file.string(), sensors.version, metrics->version()));
  }
  const auto fail_with = [&](std::optional<model::SensorId> sensor, const char* what) {
    if (!sensor) return;
    Error error = metrics ? Error{Errc::kUnavailable,
                                  fmt::format("{} has no {} now", sensors.file.string(), what)}
                          : metrics.error();
    out.failures.push_back({*sensor, after, std::move(error)});
  };
  const auto energy = metrics && metrics->energy_count
                          ? hwmon::energy_of_counts(*metrics->energy_count, sensors.unit)
                          : std::nullopt;
  if (sensors.counter && energy) {
    out.counters.push_back({*sensors.counter, before, after, *energy});
  } else {
    fail_with(sensors.counter, "energy");
  }
  const auto power = metrics ? metrics->socket_power : std::nullopt;
  if (sensors.power && power && *power > Power{}) {
    out.powers.push_back({*sensors.power, middle(before, after), *power});
  } else {
    fail_with(sensors.power, "power");
  }
}

}  // namespace

Result<std::unique_ptr<HwmonMeter>> HwmonMeter::open(const HwmonOptions& options) {
  auto cards = hwmon::find_cards(options.root);
  std::vector<Channel> channels = hwmon::find_channels(options.root, cards);
  const auto boards = hwmon::find_boards(std::move(cards), channels);
  std::erase_if(channels, hwmon::is_uninteresting);
  if (channels.empty() && boards.empty()) {
    return fail(Errc::kNotFound, fmt::format("no power or energy sensor in {}",
                                             (options.root / "sys/class/hwmon").string()));
  }
  std::unique_ptr<HwmonMeter> meter(new HwmonMeter);
  meter->add_channels(channels, boards, options.has_cpu);
  std::map<std::string, model::DomainId> used;
  for (const Board& board : boards) {
    meter->add_board(board, channels);
    // An Intel board's package where the card has no counter.
    for (const auto& device : {board.domain() + "-package", board.domain()}) {
      for (const auto& domain : meter->domains_) {
        if (domain.device == device && meter->has_sensor(domain.id)) {
          used[board.bus_address] = domain.id;
        }
      }
    }
  }
  if (!used.empty()) meter->clients_.emplace(options.root, std::move(used));
  meter->set_demand(options.demand);
  return meter;
}

// First the domains, wholes before parts; a whole exists even where its sensor does not answer.
void HwmonMeter::add_channels(const std::vector<Channel>& channels,
                              const std::vector<Board>& boards, bool has_cpu) {
  std::vector<std::pair<Channel, hwmon::Role>> known;
  for (const Channel& channel : channels) {
    auto role = hwmon::role_of(channel, channels, boards);
    const bool is_cpu = role && role->kind == model::DomainKind::kCpu;
    // Two drivers of one processor.
    const auto same = std::ranges::find_if(known, [&](const auto& entry) {
      return is_cpu && entry.second.kind == role->kind && entry.second.device == role->device &&
             entry.first.driver != channel.driver && hwmon::read_channel(entry.first).has_value();
    });
    if (is_cpu && (has_cpu || same != known.end())) {
      const std::string other = has_cpu ? "RAPL" : same->first.sensor_name();
      missing_.push_back(
          {channel.sensor_name(), {Errc::kUnavailable, other + " counts the same processor"}, ""});
    } else if (role) {
      known.emplace_back(channel, std::move(*role));
    } else {
      missing_.push_back({channel.sensor_name(), std::move(role.error()), ""});
    }
  }
  std::stable_partition(known.begin(), known.end(),
                        [](const auto& entry) { return !entry.second.parent_kind; });
  for (const auto& [channel, role] : known) add_channel(channel, role);
}

void HwmonMeter::add_channel(const Channel& channel, const hwmon::Role& role) {
  model::Domain& domain = get_domain(role, channel.bus_address + "/" + channel.input());
  const bool switched_off = hwmon::is_switched_off(channel);
  auto value = hwmon::read_channel(channel);
  if (value && *value == 0 && channel.form == Form::kEnergyInput) {
    value = fail(Errc::kUnavailable,
                 fmt::format("{} stands at 0: the board's firmware does not fill it",
                             (channel.folder / channel.attribute()).string()));
  }
  if (!switched_off && (value || hwmon::is_asleep(channel))) {
    domain.unavailable_reason.clear();
    auto [kind, traits] = traits_of(channel);
    const auto id = add_sensor(domain.id, kind, channel.sensor_name(), traits);
    const model::Sensor sensor = sensors_.back();
    add_probe(
        fmt::format("{} of {}", channel.sensor_name(), channel.bus_address), {id},
        [channel, sensor](model::Readings& out) { read_channel(channel, sensor, out); },
        [sensor](const Demand& demand) { return poll_period(sensor, demand); });
    return;
  }
  Missing missing{channel.sensor_name(), {}, ""};
  if (switched_off) {
    const auto file = (channel.folder / (channel.input() + "_enable")).string();
    missing.error = {Errc::kUnavailable, fmt::format("it is switched off ({} is 0)", file)};
    missing.fix = fmt::format("echo 1 | sudo tee {}", file);
  } else {
    missing.error = value.error();
  }
  if (!has_sensor(domain.id)) domain.unavailable_reason = missing.error.message;
  missing_.push_back(std::move(missing));
}

void HwmonMeter::add_board(const Board& board, const std::vector<Channel>& channels) {
  const auto owner = [&] { return board.bus_address + "/power1"; };
  hwmon::Role role{model::DomainKind::kGpu, board.domain(), board.name(), std::nullopt, ""};
  if (hwmon::is_apu(board)) role.kind = model::DomainKind::kModule;
  // An Intel board's counters are energy1 and energy2.
  auto whole = std::ranges::find_if(domains_, [&](const model::Domain& d) {
    return d.kind == role.kind && d.device == role.device;
  });
  if (whole == domains_.end()) {
    // Its energy is counted, so that no total lacks it.
    if (hwmon::is_integrated(board)) {
      missing_.push_back(
          {board.name(), {Errc::kUnsupported, hwmon::why_without_sensor(board, channels)}, ""});
      return;
    }
    get_domain(role, owner());
    whole = domains_.end() - 1;
    whole->unavailable_reason = hwmon::why_without_sensor(board, channels);
  }
  const model::DomainId domain = whole->id;
  whole->uuid = model::amd_uuid(read_attribute(board.device / "unique_id").value_or(""));
  if (board.driver == "amdgpu") add_metrics(board, domain);
  add_state(board, domain);
}

void HwmonMeter::add_metrics(const Board& board, model::DomainId domain) {
  MetricsSensors used{board.device / "gpu_metrics", {}, {}, {}};
  const auto table = read_file(used.file);
  if (!table) return;
  const auto metrics = hwmon::parse_gpu_metrics(*table);
  const auto leave_out = [&](std::string what, Errc code, std::string why) {
    missing_.push_back({fmt::format("{} of {}", what, board.domain()), {code, std::move(why)}, ""});
  };
  if (!metrics) return leave_out("gpu_metrics", metrics.error().code, metrics.error().message);
  used.version = metrics->version();
  used.unit =
      hwmon::counts_as_instinct(board) ? hwmon::CountUnit::kTwoToMinus16 : metrics->count_unit;
  const std::string name = fmt::format("gpu_metrics:{}/", metrics->version());
  std::vector<model::SensorId> sensors;
  if (const auto counts = metrics->energy_count; counts) {
    const std::string what = name + "energy_accumulator";
    if (*counts == 0) {
      leave_out(what, Errc::kUnavailable, "it stands at 0: the board's firmware does not fill it");
    } else if (used.unit == hwmon::CountUnit::kUndocumented) {
      leave_out(what, Errc::kUnsupported,
                fmt::format("it holds {} counts of a unit that the kernel does not name; boards "
                            "differ, so the power is used",
                            *counts));
    } else if (hwmon::energy_of_counts(*counts, used.unit)) {
      model::SensorTraits traits;
      traits.quantum = Energy::microjoules(16);  // 2^-16 J, rounded up
      used.counter = add_sensor(domain, SensorKind::kEnergyCounter, what, traits);
      sensors.push_back(*used.counter);
    }
  }
  const bool has_power = std::ranges::any_of(sensors_, [&](const model::Sensor& s) {
    return s.domain == domain &&
           (s.kind == SensorKind::kPowerInstant || s.kind == SensorKind::kPowerAverage);
  });
  if (!has_power && metrics->socket_power && *metrics->socket_power > Power{}) {
    used.power = add_sensor(
        domain, metrics->power_is_average ? SensorKind::kPowerAverage : SensorKind::kPowerInstant,
        name + (metrics->power_is_average ? "average_socket_power" : "curr_socket_power"));
    sensors.push_back(*used.power);
  }
  // Of Instinct, whose product's name may be unknown: the socket's power is that of the whole
  // package.
  if (used.unit == hwmon::CountUnit::kTwoToMinus16) {
    for (model::Sensor& s : sensors_) {
      if (s.domain == domain) s.traits.scale = model::scale_of_gpu("Instinct");
    }
  }
  if (sensors.empty()) return;
  domains_[static_cast<std::size_t>(domain)].unavailable_reason.clear();
  const model::Sensor slowest = sensors_[static_cast<std::size_t>(sensors.front())];
  add_probe(
      fmt::format("gpu_metrics of {}", board.bus_address), std::move(sensors),
      [used](model::Readings& out) { read_metrics(used, out); },
      [slowest](const Demand& demand) { return poll_period(slowest, demand); });
}

void HwmonMeter::add_state(const Board& board, model::DomainId domain) {
  struct Gauge {
    model::SensorId sensor{};
    hwmon::StateFile state;
  };
  std::vector<Gauge> gauges;
  std::vector<model::SensorId> ids;
  for (auto& state : hwmon::find_state(board)) {
    const bool is_known =
        std::ranges::any_of(gauges, [&](const Gauge& g) { return g.state.gauge == state.gauge; });
    if (is_known) continue;
    ids.push_back(add_sensor(domain, SensorKind::kGauge, std::string(state.gauge)));
    gauges.push_back({ids.back(), std::move(state)});
  }
  if (gauges.empty()) return;
  add_probe(
      fmt::format("state of {}", board.bus_address), std::move(ids),
      [gauges](model::Readings& out) {
        for (const Gauge& gauge : gauges) {
          auto value = read_integer(gauge.state.file);
          const HostTime now = HostClock::now();
          if (value) {
            out.gauges.push_back(
                {gauge.sensor, now, static_cast<double>(*value) * gauge.state.unit});
          } else {
            out.failures.push_back({gauge.sensor, now, std::move(value.error())});
          }
        }
      },
      [](const Demand& demand) {
        return demand.state_period > Duration{}
                   ? std::max<Duration>(demand.state_period, milliseconds{100})
                   : kStatePeriod;
      });
}

model::Domain& HwmonMeter::get_domain(const hwmon::Role& role, const std::string& owner) {
  std::string device = role.device;
  for (std::size_t i = 0; i < domains_.size(); ++i) {
    if (domains_[i].kind != role.kind || domains_[i].device != device) continue;
    if (owners_[i] == owner) return domains_[i];
    // Two chips with one label are two things.
    device = fmt::format("{}@{}", role.device, owner);
  }
  model::Domain& domain = add_domain(role.kind, device, role.name);
  for (const model::Domain& whole : domains_) {
    if (role.parent_kind == whole.kind && role.parent_device == whole.device) {
      domain.parent = whole.id;
    }
  }
  owners_.push_back(owner);
  return domain;
}

bool HwmonMeter::has_sensor(model::DomainId domain) const {
  return std::ranges::any_of(sensors_, [&](const model::Sensor& s) {
    return s.domain == domain && s.kind != SensorKind::kGauge;
  });
}

model::SensorId HwmonMeter::add_sensor(model::DomainId domain, SensorKind kind, std::string name,
                                       model::SensorTraits traits) {
  model::Sensor& sensor = Meter::add_sensor(domain, kind, std::move(name));
  sensor.traits = std::move(traits);
  const auto of = std::ranges::find(domains_, domain, &model::Domain::id);
  if (sensor.name.starts_with("hwmon:ina")) {
    sensor.traits.scale = model::scale_of_rail();
  } else if (of != domains_.end() && of->kind == model::DomainKind::kGpu) {
    sensor.traits.scale = model::scale_of_gpu(of->name);
  } else if (of != domains_.end() && is_apu_domain(*of)) {
    sensor.traits.scale = model::scale_of_gpu("");  // the chip is all of it
  }
  return sensor.id;
}

void HwmonMeter::add_probe(std::string name, std::vector<model::SensorId> sensors, Read read,
                           Pace pace) {
  probes_.push_back({std::move(name), {}, std::move(sensors)});
  reads_.push_back(std::move(read));
  paces_.push_back(std::move(pace));
  turns_.push_back(0);
}

void HwmonMeter::set_demand(const Demand& demand) {
  for (std::size_t i = 0; i < probes_.size(); ++i) probes_[i].period = paces_[i](demand);
}

std::optional<Result<std::vector<model::GpuProcessUse>>> HwmonMeter::read_processes(
    model::Readings&) {
  if (!clients_ || !clients_->is_possible()) return std::nullopt;
  return clients_->read(HostClock::now());
}

HostTime HwmonMeter::read(std::size_t index, model::Readings& out) {
  const HostTime begin = HostClock::now();
  reads_.at(index)(out);
  const Duration period = probes_[index].period;
  if (!is_varied(index)) return begin + period;
  const double turn = turns_[index];
  turns_[index] = std::fmod(turn + kGoldenTurn, 1.0);
  return begin + duration_of(seconds(period) * (1 + turns_[index] - turn));
}

// Power that is drawn at the time of the read, by a sensor that renews it more often than it is
// read: the reads fall into all parts of the period in turn, so that no load has their period.
bool HwmonMeter::is_varied(std::size_t index) const {
  const auto& of = probes_[index].sensors;
  return std::ranges::any_of(of, [&](model::SensorId id) {
    const model::Sensor& sensor = sensors_[static_cast<std::size_t>(id)];
    return sensor.kind == SensorKind::kPowerInstant && !sensor.traits.refresh;
  });
}

}  // namespace jouleprof::meters
