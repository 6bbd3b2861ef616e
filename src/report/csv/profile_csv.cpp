#include <initializer_list>
#include <utility>

#include "base/text.h"
#include "report/cells.h"
#include "report/quantity.h"
#include "report/render.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

using model::Provenance;

class Row {
 public:
  Row& add(std::string_view text) {
    // A line break within quotes is correct CSV that line-based tools fall over.
    line_ += (empty_ ? "" : ",") + csv_field(printable(text));
    empty_ = false;
    return *this;
  }
  template <typename T>
    requires std::is_integral_v<T>
  Row& add(T number) {
    return add(std::to_string(number));
  }
  Row& add(Energy e) { return add(joules_decimal(e)); }
  Row& add(Power p) { return add(fixed_decimal(p.watts())); }
  Row& add(Duration d) { return add(seconds_decimal(d)); }
  Row& add(double value) { return add(fixed_decimal(value)); }
  template <typename T>
  Row& add(const std::optional<T>& value) {
    return value ? add(*value) : add(std::string_view());
  }

  std::string line() const { return line_ + '\n'; }

 private:
  std::string line_;
  bool empty_ = true;
};

Row header(std::initializer_list<std::string_view> names) {
  Row row;
  for (const std::string_view name : names) row.add(name);
  return row;
}

}  // namespace

std::string to_csv(const model::Profile& profile) {
  std::string csv = header({"domain",
                            "device",
                            "name",
                            "uuid",
                            "visible",
                            "parent",
                            "energy_joules",
                            "interval_low_joules",
                            "interval_high_joules",
                            "repeatability_joules",
                            "rest_joules",
                            "held_joules",
                            "active_joules",
                            "dynamic_joules",
                            "processes_joules",
                            "others_joules",
                            "held_unowned_joules",
                            "unattributed_joules",
                            "mean_watts",
                            "peak_watts",
                            "provenance",
                            "sensor",
                            "method",
                            "reason"})
                        .line();
  const auto labels = labels_of(profile);
  for (const auto& d : profile.domains) {
    std::string parent;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (d.domain.parent == profile.domains[i].domain.id) parent = labels[i];
    }
    const auto figure = [&](auto member) {
      return d.energy ? std::optional(member(*d.energy)) : std::nullopt;
    };
    Row row;
    row.add(to_string(d.domain.kind)).add(d.domain.device).add(d.domain.name).add(d.domain.uuid);
    row.add(std::string_view(d.domain.visible ? "true" : "false")).add(parent);
    row.add(figure([](const auto& m) { return m.energy; }));
    row.add(figure([](const auto& m) { return m.low(); }));
    row.add(figure([](const auto& m) { return m.high(); }));
    row.add(figure([](const auto& m) { return m.repeatability; }));
    row.add(rest_of(d))
        .add(held_of(d))
        .add(active_of(d))
        .add(dynamic_of(d))
        .add(processes_of(profile, d))
        .add(d.others);
    row.add(d.held_unowned).add(d.unattributed).add(d.mean_power).add(d.peak_power);
    row.add(to_string(d.energy ? d.energy->provenance : Provenance::kUnavailable));
    row.add(d.energy ? d.energy->sensor : "").add(d.energy ? d.energy->method : "");
    csv += row.add(d.energy ? "" : d.reason).line();
  }
  return csv;
}

std::string processes_to_csv(const model::Profile& profile) {
  Row heading =
      header({"pid", "own_pid", "parent_pid", "name", "command_line", "cpu_seconds",
              "peak_pss_bytes", "peak_uss_bytes", "peak_gpu_memory_bytes",
              "mean_sm_utilisation_ratio", "provenance", "energy_joules", "peak_rss_bytes"});
  for (const std::string& label : labels_of(profile)) heading.add(label + "_joules");
  std::string csv = heading.line();
  for (const auto& p : profile.processes) {
    Row row;
    row.add(p.process.pid).add(p.process.own_pid).add(p.process.parent_pid).add(p.process.name);
    row.add(p.process.command_line).add(p.cpu_time).add(p.peak_pss_bytes).add(p.peak_uss_bytes);
    row.add(p.peak_gpu_memory_bytes).add(p.mean_sm_utilisation);
    row.add(to_string(p.shares.empty() ? Provenance::kUnavailable : p.provenance));
    row.add(p.shares.empty() ? std::nullopt : std::optional(energy_of(profile, p)));
    row.add(p.peak_rss_bytes);
    for (const auto& d : profile.domains) {
      std::optional<Energy> share;
      for (const auto& s : p.shares) {
        if (s.domain == d.domain.id) share = share.value_or(Energy{}) + s.energy;
      }
      row.add(share);
    }
    csv += row.line();
  }
  return csv;
}

}  // namespace jouleprof::report
