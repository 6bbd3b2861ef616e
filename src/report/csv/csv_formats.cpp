#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "model/window_sum.h"
#include "report/activity/activity.h"
#include "report/cells.h"
#include "report/csv/readings_csv.h"
#include "report/format/format.h"
#include "report/quantity.h"
#include "report/render.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

using analysis::Part;
using analysis::Run;

Result<void> write_domains(const Run& run, const Part& part, const FormatOptions& options,
                           std::ostream& out) {
  if (options.windows) {
    const auto made = profile_with_windows(run, part);
    if (!made) return forward_error(made);
    out << windows_to_csv(**made);
    return {};
  }
  return write_table_or_summary(
      run, part, options, out,
      [&](const auto& activity) { return activity_to_csv(activity, *options.by); },
      [&](const auto& profile) { return to_csv(profile); });
}

Result<void> write_processes(const Run& run, const Part& part, const FormatOptions&,
                             std::ostream& out) {
  const auto& profile = run.profile(part);
  if (!profile) return tl::unexpected(profile.error());
  out << processes_to_csv(*profile);
  return {};
}

Result<void> write_windows(const Run& run, const Part& part, const FormatOptions&,
                           std::ostream& out) {
  std::optional<analysis::PartSpan> chosen;
  if (!part.is_whole()) {
    const auto span = run.span(part);
    if (!span) return tl::unexpected(span.error());
    chosen = *span;
  }
  write_window_csv(out, run.recording(), window_energy_of(run), chosen);
  return {};
}

template <void (*WriteRows)(std::ostream&, const model::Recording&, const analysis::PartSpan&)>
Result<void> write_readings(const Run& run, const Part& part, const FormatOptions&,
                            std::ostream& out) {
  const auto span = readings_span(run, part);
  if (!span) return tl::unexpected(span.error());
  WriteRows(out, run.recording(), *span);
  return {};
}

}  // namespace

extern const Format domains_format;
constinit const Format domains_format{.name = "domains",
                                      .extension = ".domains.csv",
                                      .shows = "a row for each domain, or of the table of --by",
                                      .has_tables = true,
                                      .write = write_domains};

extern const Format csv_format;
constinit const Format csv_format{.name = "csv",
                                  .extension = ".csv",
                                  .shows = "every power reading",
                                  .write = write_readings<write_power_csv>};

extern const Format counters_format;
constinit const Format counters_format{.name = "counters",
                                       .extension = ".counters.csv",
                                       .shows = "every read of an energy counter",
                                       .write = write_readings<write_counter_csv>};

extern const Format gauges_format;
constinit const Format gauges_format{.name = "gauges",
                                     .extension = ".gauges.csv",
                                     .shows = "clocks, temperatures, utilisation and limits",
                                     .write = write_readings<write_gauge_csv>};

extern const Format processes_format;
constinit const Format processes_format{.name = "processes",
                                        .extension = ".processes.csv",
                                        .shows = "a row for each process",
                                        .write = write_processes};

extern const Format windows_format;
constinit const Format windows_format{.name = "windows",
                                      .extension = ".windows.csv",
                                      .shows = "a row for each window and domain",
                                      .write = write_windows};

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

namespace {

using model::Measurement;
using model::WindowEnergy;
using model::WindowGroup;

constexpr std::string_view kHeader =
    "name,labels,imported,count,total_seconds,mean_seconds,quartile_low_seconds,median_seconds,"
    "quartile_high_seconds,device,domain,count_with_energy,energy_joules,mean_joules,"
    "mean_low_joules,mean_high_joules,quartile_low_joules,median_joules,quartile_high_joules,"
    "rest_joules,held_joules,active_joules,provenance,reason\n";

std::string text(std::string_view words) { return csv_field(printable(words)); }
std::string decimal(Energy e) { return joules_decimal(e); }
std::string decimal(Duration d) { return seconds_decimal(d); }

template <typename T>
std::string three(const std::optional<model::Quartiles<T>>& q) {
  return q ? decimal(q->lower) + ',' + decimal(q->median) + ',' + decimal(q->upper) : ",,";
}

std::string level(const std::optional<Measurement>& m) { return m ? decimal(m->energy) : ""; }

std::string labels_of(const WindowGroup& group) {
  std::string all;
  for (const auto& [name, value] : group.labels) {
    all += (all.empty() ? "" : ";") + name + '=' + value;
  }
  return all;
}

std::string figures(const WindowGroup& group, const WindowEnergy& e) {
  const bool has_sum = is_whole(group, e);
  const auto sum = e.energy ? std::optional(e.energy->energy) : e.reported;
  std::string line = has_sum && sum ? decimal(*sum) : "";
  line += ',';
  if (const auto mean = mean_of(e)) {
    line += decimal(mean->energy) + ',' + decimal(mean->low()) + ',' + decimal(mean->high());
  } else {
    line += (sum && e.count > 0 ? decimal(model::mean_of(*sum, e.count)) : "") + ",,";
  }
  const model::EnergyLevels levels = has_sum ? e.levels : model::EnergyLevels{};
  line += ',' + three(e.quartiles) + ',' + level(levels.rest) + ',' + level(levels.held) + ',' +
          level(levels.active) + ',';
  if (!group.imported) {
    line += to_string(e.energy ? e.energy->provenance : model::Provenance::kUnavailable);
  }
  return line + ',' + text(e.reason);
}

}  // namespace

std::string windows_to_csv(const model::Profile& profile) {
  std::string csv(kHeader);
  for (const WindowGroup& group : profile.windows) {
    const std::string head = text(group.name) + ',' + text(labels_of(group)) + ',' +
                             (group.imported ? "true" : "false") + ',' +
                             std::to_string(group.count) + ',' + decimal(group.total_time) + ',' +
                             decimal(group.mean_time()) + ',' + three(group.time_quartiles) + ',';
    for (std::size_t d = 0; d < group.energies.size() && d < profile.domains.size(); ++d) {
      const WindowEnergy& e = group.energies[d];
      csv += head + text(profile.domains[d].domain.device) + ',' +
             std::string(to_string(profile.domains[d].domain.kind)) + ',' +
             std::to_string(e.count) + ',' + figures(group, e) + '\n';
    }
  }
  return csv;
}

namespace {

using Fields = std::vector<std::string>;

std::string line_of(const Fields& fields) {
  std::string line;
  for (const auto& field : fields) {
    // A line break within quotes is correct CSV that line-based tools fall over.
    line += (line.empty() ? "" : ",") + csv_field(printable(field));
  }
  return line + '\n';
}

void add(Fields& fields, const std::optional<model::Measurement>& m) {
  fields.push_back(m ? joules_decimal(m->energy) : "");
  fields.push_back(m ? joules_decimal(m->low()) : "");
  fields.push_back(m ? joules_decimal(m->high()) : "");
}

std::string number(const std::optional<double>& value, int decimals = 6) {
  return value ? fixed_decimal(*value, decimals) : "";
}

void add_folded(Fields& fields, const std::optional<model::FoldedLayers>& folded) {
  fields.push_back(folded ? std::to_string(folded->count) : "");
  const auto spread = folded ? folded->joules : std::nullopt;
  for (const auto figure :
       {&model::FoldedLayers::Spread::mean, &model::FoldedLayers::Spread::deviation,
        &model::FoldedLayers::Spread::least, &model::FoldedLayers::Spread::greatest}) {
    fields.push_back(spread ? fixed_decimal((*spread).*figure) : "");
  }
}

}  // namespace

std::string activity_to_csv(const std::vector<model::ActivityProfile>& profiles,
                            const ActivityOptions& options) {
  Fields heading{"by",
                 "domain",
                 "device",
                 "uuid",
                 "number",
                 "parent",
                 "depth",
                 "name",
                 "detail",
                 "symbol",
                 "calls",
                 "launches",
                 "busy_seconds",
                 "overlapped_seconds",
                 "energy_joules",
                 "interval_low_joules",
                 "interval_high_joules",
                 "inclusive_joules",
                 "inclusive_low_joules",
                 "inclusive_high_joules",
                 "energy_per_launch_joules",
                 "mean_watts",
                 "share_ratio",
                 "resolvable",
                 "group",
                 "group_joules",
                 "group_low_joules",
                 "group_high_joules",
                 "macs",
                 "parameters",
                 "provenance",
                 "method",
                 "reason"};
  if (options.fold) {
    for (const auto* name : {"folded_layers", "folded_mean_joules", "folded_deviation_joules",
                             "folded_least_joules", "folded_greatest_joules"}) {
      heading.emplace_back(name);
    }
  }
  std::string csv = line_of(heading);
  for (const auto& profile : profiles) {
    for (const auto& line : view_of(profile, options).lines) {
      const model::ActivityRow& row = *line.row;
      const auto power = power_of(row);
      Fields fields{std::string(to_string(options.by)),
                    std::string(to_string(profile.domain.kind)),
                    profile.domain.device,
                    profile.domain.uuid,
                    std::to_string(line.index),
                    line.depth > 0 ? std::to_string(row.parent) : "",
                    std::to_string(line.depth),
                    row.name,
                    row.detail,
                    row.symbol,
                    row.count > 0 ? std::to_string(row.count) : "",
                    std::to_string(row.launches),
                    seconds_decimal(row.busy),
                    row.overlapped ? seconds_decimal(*row.overlapped) : ""};
      add(fields, row.energy);
      add(fields, row.inclusive);
      fields.push_back(number(joules_per_launch(row), 9));
      fields.push_back(power ? fixed_decimal(power->watts()) : "");
      fields.push_back(number(share_of(profile, whole_of(row))));
      fields.emplace_back(!whole_of(row) ? "" : row.resolvable ? "true" : "false");
      fields.push_back(row.group != model::kNone ? std::to_string(row.group) : "");
      add(fields, row.group_energy);
      fields.push_back(number(row.macs, 0));
      fields.push_back(options.by == ActivityBy::kLayer ? std::to_string(row.parameters) : "");
      fields.emplace_back(
          to_string(whole_of(row) ? whole_of(row)->provenance : model::Provenance::kUnavailable));
      fields.push_back(profile.method);
      fields.push_back(row.reason);
      if (options.fold) add_folded(fields, row.folded);
      csv += line_of(fields);
    }
  }
  return csv;
}

}  // namespace jouleprof::report
