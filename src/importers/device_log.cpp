#include "importers/device_log.h"

#include <algorithm>
#include <utility>

namespace jouleprof::importers {
namespace {

struct Round {
  std::size_t first = 0;
  Duration stamp{};
};

std::vector<Round> find_rounds(const DeviceLog& log) {
  std::vector<Round> rounds;
  std::vector<bool> seen(log.devices.size());
  for (std::size_t i = 0; i < log.rows.size(); ++i) {
    const LogRow& row = log.rows[i];
    if (rounds.empty() || row.starts_section || seen[row.device]) {
      rounds.push_back({i, row.stamp});
      seen.assign(seen.size(), false);
    }
    seen[row.device] = true;
  }
  return rounds;
}

class Adder {
 public:
  Adder(const DeviceLog& log, RecordingBuilder& builder)
      : log_(log), builder_(builder), sensors_(log.devices.size() * log.columns.size()) {
    for (const LogDevice& device : log.devices) {
      domains_.push_back(builder.add_domain(device.kind, device.device, device.name));
      builder.domain(domains_.back()).uuid = device.uuid;
    }
  }

  void add(const LogRow& row, HostTime at) {
    for (std::size_t c = 0; c < log_.columns.size(); ++c) {
      const auto& value = row.values[c];
      auto& sensor = sensors_[row.device * log_.columns.size() + c];
      if (!sensor) {
        if (!value) continue;
        sensor = make_sensor(row.device, log_.columns[c]);
      }
      add_value(*sensor, log_.columns[c], at, value);
    }
  }

  void name_devices_without_power(const std::string& reason) {
    for (std::size_t d = 0; d < domains_.size(); ++d) {
      bool any = false;
      for (std::size_t c = 0; c < log_.columns.size(); ++c) {
        any = any || (sensors_[d * log_.columns.size() + c] &&
                      log_.columns[c].kind != model::SensorKind::kGauge);
      }
      if (!any) builder_.domain(domains_[d]).unavailable_reason = reason;
    }
  }

 private:
  model::SensorId make_sensor(std::size_t device, const LogColumn& column) {
    const auto sensor = builder_.add_sensor(domains_[device], column.kind, column.sensor);
    builder_.recording().sensors.back().traits.window = column.window;
    return sensor;
  }

  void add_value(model::SensorId sensor, const LogColumn& column, HostTime at,
                 std::optional<double> value) {
    if (value) *value *= column.scale;
    switch (column.kind) {
      case model::SensorKind::kGauge:
        if (value) builder_.add_gauge(sensor, at, *value);
        break;
      case model::SensorKind::kEnergyCounter:
        if (value && *value >= 0 && *value < 1e12) {
          builder_.recording().readings.counters.push_back(
              {sensor, at, at, Energy::joules(*value)});
        }
        break;
      default:
        builder_.add_power(sensor, at, value);
    }
  }

  const DeviceLog& log_;
  RecordingBuilder& builder_;
  std::vector<model::DomainId> domains_;
  std::vector<std::optional<model::SensorId>> sensors_;  // by device, then column
};

}  // namespace

Layout add_log(const DeviceLog& log, RecordingBuilder& builder, Duration seam,
               const std::string& unavailable_reason) {
  const auto rounds = find_rounds(log);
  std::vector<Stamp> stamps;
  for (const Round& round : rounds) {
    stamps.push_back({round.stamp, log.rows[round.first].starts_section});
  }
  Layout layout = lay_out(stamps, seam);
  Adder adder(log, builder);
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    const bool is_last = r + 1 == rounds.size();
    const std::size_t end = is_last ? log.rows.size() : rounds[r + 1].first;
    const Duration room = is_last ? Duration::max() : layout.times[r + 1] - layout.times[r];
    HostTime at = layout.times[r];
    for (std::size_t i = rounds[r].first; i < end; ++i) {
      // A round's rows are read one after the other; the next round's come later.
      const Duration offset = log.rows[i].stamp - rounds[r].stamp;
      if (offset > Duration::zero() && offset < room) at = std::max(at, layout.times[r] + offset);
      adder.add(log.rows[i], at);
    }
  }
  adder.name_devices_without_power(unavailable_reason);
  return layout;
}

}  // namespace jouleprof::importers
