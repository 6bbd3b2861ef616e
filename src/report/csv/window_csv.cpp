#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "report/cells.h"
#include "report/csv/export_samples.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

class Writer {
 public:
  Writer(std::ostream& out, const model::Recording& recording)
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
  Writer writer(out, recording);
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

}  // namespace jouleprof::report
