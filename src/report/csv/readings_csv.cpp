#include "report/csv/readings_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "report/cells.h"
#include "report/quantity.h"
#include "report/snapshot.h"

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
    std::string work;
    for (const auto& edge : {recording.run.work_begin, recording.run.work_end}) {
      work += ',';
      if (edge && knows_wall_time_) {
        work += seconds_decimal(clocks_.to_real(*edge).time_since_epoch());
      }
    }
    for (const auto& s : recording.sensors) {
      const auto it = domains.find(s.domain);
      const std::string device = it == domains.end() ? "" : it->second->device;
      const std::string_view kind = it == domains.end() ? "" : to_string(it->second->kind);
      names_[s.id] = ',' + csv_field(printable(device)) + ',' + std::string(kind) + ',' +
                     csv_field(printable(s.name)) + ',';
      tails_[s.id] = std::string(to_string(s.provenance)) + ',' +
                     csv_field(printable(it == domains.end() ? "" : it->second->name)) + work;
    }
  }

  // Rows in order of time; `fields` gives what stands after the sensor's name.
  template <typename Reading, typename Fields>
  void write(std::string_view fields_header, const std::vector<Reading>& readings, Fields fields) {
    out_ << "time_unix_seconds,time_seconds,device,domain," << fields_header
         << ",provenance,name,work_begin_unix_seconds,work_end_unix_seconds\n";
    std::vector<std::size_t> order(readings.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return time_of(readings[a]) < time_of(readings[b]);
    });
    for (const std::size_t i : order) {
      const HostTime t = time_of(readings[i]);
      if (!span_.contains(t)) continue;
      if (knows_wall_time_) out_ << seconds_decimal(clocks_.to_real(t).time_since_epoch());
      out_ << ',' << seconds_decimal(t - origin_) << name(readings[i].sensor) << fields(readings[i])
           << ',' << tail(readings[i].sensor) << '\n';
    }
  }

 private:
  std::string_view name(SensorId id) const {
    const auto it = names_.find(id);
    return it == names_.end() ? std::string_view(",,,,") : it->second;
  }
  std::string_view tail(SensorId id) const {
    const auto it = tails_.find(id);
    return it == tails_.end() ? std::string_view(",,,") : it->second;
  }

  std::ostream& out_;
  analysis::PartSpan span_;
  HostTime origin_;
  bool knows_wall_time_;
  ClockMap clocks_;
  std::map<SensorId, std::string> names_;  // device, domain and sensor as fields
  std::map<SensorId, std::string> tails_;  // provenance, product and span of the work
};

std::string finite(double value) { return std::isfinite(value) ? shortest(value) : ""; }

std::string row(const model::Snapshot& snapshot, const model::DomainSnapshot& d) {
  std::string line =
      fmt::format("{},{},{},{},{},{},{},{}", utc_text(snapshot.time),
                  seconds_decimal(snapshot.time.time_since_epoch()),
                  seconds_decimal(snapshot.elapsed), to_string(d.domain.kind),
                  csv_field(printable(d.domain.device)), csv_field(printable(d.domain.name)),
                  to_string(d.provenance), d.energy ? joules_decimal(d.energy->energy) : "");
  for (const auto name : snapshot_figures()) {
    const auto value = figure_of(d, name);
    line += ',' + (value ? shortest(*value) : "");
  }
  const auto limits = clock_limits_of(d);
  line += ',' + (limits ? fmt::format("{}", fmt::join(*limits, " ")) : "");
  line += ',' + (d.age ? seconds_decimal(*d.age) : "");
  return line + '\n';
}

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

namespace {

class WindowWriter {
 public:
  WindowWriter(std::ostream& out, const model::Recording& recording)
      : out_(out), recording_(recording), clocks_(recording.clock_points) {
    for (const auto& d : recording.domains) {
      domains_[d.id] = ',' + csv_field(printable(d.device)) + ',' + std::string(to_string(d.kind));
    }
    out_ << "name,begin_unix_seconds,begin_seconds,duration_seconds,device,domain,energy_joules,"
            "interval_low_joules,interval_high_joules,repeatability_joules,provenance,reason,"
            "labels\n";
  }

  void window(std::string_view name, std::optional<HostTime> begin, Duration duration,
              std::string_view labels) {
    const auto& origin = recording_.run.work_begin;
    head_ = csv_field(printable(name)) + ',';
    if (begin && !recording_.clock_points.empty()) {
      head_ += seconds_decimal(clocks_.to_real(*begin).time_since_epoch());
    }
    head_ += ',';
    if (begin && origin) head_ += seconds_decimal(*begin - *origin);
    head_ += ',' + seconds_decimal(duration);
    labels_ = csv_field(printable(labels));
  }

  void row(model::DomainId domain, const Result<model::Measurement>& m) {
    if (!m) {
      row(domain, ",,,,unavailable," + csv_field(printable(m.error().message)));
      return;
    }
    row(domain, joules_decimal(m->energy) + ',' + joules_decimal(m->low()) + ',' +
                    joules_decimal(m->high()) + ',' + joules_decimal(m->repeatability) + ',' +
                    std::string(to_string(m->provenance)) + ',');
  }
  void row(model::DomainId domain, Energy reported) {
    row(domain, joules_decimal(reported) + ",,,,,");
  }

 private:
  void row(model::DomainId domain, const std::string& fields) {
    const auto place = domains_.find(domain);
    if (place == domains_.end()) return;
    out_ << head_ << place->second << ',' << fields << ',' << labels_ << '\n';
  }

  std::ostream& out_;
  const model::Recording& recording_;
  ClockMap clocks_;
  std::map<model::DomainId, std::string> domains_;  // device and domain as fields
  std::string head_;                                // the window's own fields
  std::string labels_;
};

}  // namespace

void write_window_csv(std::ostream& out, const model::Recording& recording,
                      const WindowEnergyOf& energy_of,
                      const std::optional<analysis::PartSpan>& part) {
  const auto is_left_out = [&](std::optional<HostTime> begin) {
    return part && (!begin || *begin < part->begin || *begin >= part->end);
  };
  WindowWriter writer(out, recording);
  for (const auto& w : recording.windows) {
    if (is_left_out(w.begin)) continue;
    writer.window(w.name, w.begin, w.end - w.begin,
                  "pid=" + std::to_string(w.pid) + ";thread=" + std::to_string(w.thread) +
                      ";edges=" + (w.device_time ? "device" : "host"));
    for (std::size_t d = 0; d < recording.domains.size(); ++d) {
      const model::DomainId domain = recording.domains[d].id;
      if (w.devices.contains(domain)) writer.row(domain, energy_of(w, d));
    }
  }
  for (const auto& w : recording.imported_windows) {
    if (is_left_out(w.begin)) continue;
    std::string labels;
    for (const auto& [name, value] : w.labels) {
      labels += (labels.empty() ? "" : ";") + name + '=' + value;
    }
    writer.window(w.name, w.begin, w.duration, labels);
    for (const auto& [domain, energy] : w.energies) writer.row(domain, energy);
  }
}

std::string snapshot_csv_header() {
  return fmt::format(
      "time,time_unix_seconds,elapsed_seconds,domain,device,name,provenance,energy_joules,{},"
      "clock_limits,age_seconds\n",
      fmt::join(snapshot_figures(), ","));
}

std::string snapshot_csv_rows(const model::Snapshot& snapshot) {
  std::string text;
  for (const auto* domain : rows_of(snapshot)) text += row(snapshot, *domain);
  return text;
}

}  // namespace jouleprof::report
