#include "report/csv/export_samples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "report/cells.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

using model::Recording;
using model::SensorId;

HostTime time_of(const model::CounterReading& r) { return r.after; }
HostTime time_of(const model::PowerReading& r) { return r.at; }
HostTime time_of(const model::GaugeReading& r) { return r.at; }

HostTime origin_of(const Recording& recording) {
  if (recording.run.work_begin) return *recording.run.work_begin;
  HostTime first = HostTime::max();
  const auto see = [&](const auto& readings) {
    for (const auto& r : readings) first = std::min(first, time_of(r));
  };
  see(recording.readings.counters);
  see(recording.readings.powers);
  see(recording.readings.gauges);
  return first;
}

class Writer {
 public:
  Writer(std::ostream& out, const Recording& recording, const analysis::PartSpan& span)
      : out_(out),
        span_(span),
        origin_(origin_of(recording)),
        knows_wall_time_(!recording.clock_points.empty()),
        clocks_(recording.clock_points) {
    std::map<model::DomainId, const model::Domain*> domains;
    for (const auto& d : recording.domains) domains[d.id] = &d;
    for (const auto& s : recording.sensors) {
      const auto it = domains.find(s.domain);
      const std::string device = it == domains.end() ? "" : it->second->device;
      const std::string_view kind = it == domains.end() ? "" : to_string(it->second->kind);
      names_[s.id] = ',' + csv_field(printable(device)) + ',' + std::string(kind) + ',' +
                     csv_field(printable(s.name)) + ',';
    }
  }

  // Rows in order of time; `fields` gives what stands after the sensor's name.
  template <typename Reading, typename Fields>
  void write(std::string_view fields_header, const std::vector<Reading>& readings, Fields fields) {
    out_ << "time_unix_seconds,time_seconds,device,domain," << fields_header << '\n';
    std::vector<std::size_t> order(readings.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return time_of(readings[a]) < time_of(readings[b]);
    });
    for (const std::size_t i : order) {
      const HostTime t = time_of(readings[i]);
      if (!span_.contains(t)) continue;
      if (knows_wall_time_) out_ << seconds_decimal(clocks_.to_real(t).time_since_epoch());
      out_ << ',' << seconds_decimal(t - origin_) << name(readings[i].sensor) << fields(readings[i])
           << '\n';
    }
  }

 private:
  std::string_view name(SensorId id) const {
    const auto it = names_.find(id);
    return it == names_.end() ? std::string_view(",,,,") : it->second;
  }

  std::ostream& out_;
  analysis::PartSpan span_;
  HostTime origin_;
  bool knows_wall_time_;
  ClockMap clocks_;
  std::map<SensorId, std::string> names_;  // device, domain and sensor as fields
};

std::string finite(double value) { return std::isfinite(value) ? shortest(value) : ""; }

}  // namespace

void write_power_csv(std::ostream& out, const Recording& recording,
                     const analysis::PartSpan& span) {
  Writer(out, recording, span)
      .write("sensor,power_watts", recording.readings.powers,
             [](const model::PowerReading& r) { return finite(r.power.watts()); });
}

void write_counter_csv(std::ostream& out, const Recording& recording,
                       const analysis::PartSpan& span) {
  Writer(out, recording, span)
      .write("sensor,read_seconds,energy_joules", recording.readings.counters,
             [](const model::CounterReading& r) {
               return seconds_decimal(r.after - r.before) + ',' + joules_decimal(r.total);
             });
}

void write_gauge_csv(std::ostream& out, const Recording& recording,
                     const analysis::PartSpan& span) {
  Writer(out, recording, span)
      .write("quantity,value", recording.readings.gauges,
             [](const model::GaugeReading& r) { return finite(r.value); });
}

}  // namespace jouleprof::report
