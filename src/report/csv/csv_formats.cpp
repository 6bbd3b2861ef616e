#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "report/cells.h"
#include "report/csv/readings_csv.h"
#include "report/format/format.h"
#include "report/json/records.h"
#include "report/quantity.h"
#include "report/results/bench.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

using analysis::Part;
using analysis::Run;

template <class... Record>
std::string heading(const Record&... record) {
  CsvColumns row;
  columns(record..., row);
  return row.heading();
}
template <class... Record>
std::string line(const Record&... record) {
  CsvColumns row;
  columns(record..., row);
  return row.line();
}

Result<void> write_domains(const Run& run, const Part& part, const FormatOptions& options,
                           std::ostream& out) {
  return write_table_or_summary(
      run, part, options,
      {.serving = [&](const auto& served) { return serving_to_csv(served, *options.serving); },
       .windows = windows_to_csv,
       .collectives = nullptr,
       .activity = [&](const auto& rows) { return activity_to_csv(rows, *options.by); },
       .summary = to_csv},
      out);
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

std::string field(const std::optional<double>& value) {
  return value ? fixed_decimal(*value, 9) : std::string();
}

std::string joined(std::initializer_list<std::string> fields) {
  std::string line;
  for (const auto& text : fields) line += (line.empty() ? "" : ",") + text;
  return line;
}

std::string text_field(std::string_view text) { return csv_field(printable(text)); }

std::string joules(const std::optional<JoulesPer>& j) {
  return j ? fixed_decimal(j->joules, 9) : std::string();
}

std::string active(const std::optional<JoulesPer>& j) {
  if (!j) return ",,,";
  return joined({fixed_decimal(j->joules, 9), fixed_decimal(j->low(), 9),
                 fixed_decimal(j->high(), 9), fixed_decimal(j->repeatability, 9)});
}

std::string figures(const std::optional<JoulesPer>& j) {
  if (!j) return ",,,,";
  return joined({fixed_decimal(j->joules, 9), fixed_decimal(j->low(), 9),
                 fixed_decimal(j->high(), 9), fixed_decimal(j->repeatability, 9),
                 std::string(to_string(j->provenance))});
}

// Power, clock and temperature of the device that does the work, in the case's window.
std::string of_window(const analysis::BenchEnergy& energy) {
  std::string mean;
  std::string peak;
  if (energy.device) {
    const auto& domain = energy.profile.domains[*energy.device];
    if (domain.mean_power) mean = fixed_decimal(domain.mean_power->watts());
    if (domain.peak_power) peak = fixed_decimal(domain.peak_power->watts());
  }
  const auto value = [](const std::optional<analysis::GaugeSummary>& gauge) {
    return gauge ? fixed_decimal(gauge->mean) : std::string();
  };
  return mean + ',' + peak + ',' + value(energy.sm_clock) + ',' + value(energy.temperature);
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

std::string to_csv(const model::Profile& profile) {
  std::string csv = heading(model::DomainProfile{}, profile);
  for (const auto& domain : profile.domains) csv += line(domain, profile);
  return csv;
}

std::string processes_to_csv(const model::Profile& profile) {
  const auto labels = labels_of(profile);
  const auto row_of = [&](const model::ProcessProfile& p) {
    CsvColumns row;
    columns(p, profile, row);
    for (std::size_t d = 0; d < labels.size(); ++d) {
      std::optional<Energy> share;
      for (const auto& s : p.shares) {
        if (s.domain == profile.domains[d].domain.id) share = share.value_or(Energy{}) + s.energy;
      }
      row(labels[d] + "_joules", share, "", "", {.place = 5});
    }
    return row;
  };
  std::string csv = row_of({}).heading();
  for (const auto& process : profile.processes) csv += row_of(process).line();
  return csv;
}

std::string windows_to_csv(const model::Profile& profile) {
  const auto row_of = [&](const model::WindowGroup& group, const model::WindowEnergy& energy,
                          const model::Domain& domain) {
    CsvColumns row;
    columns(group, profile, row);
    columns(energy, group, domain, row);
    return row;
  };
  std::string csv = row_of({}, {}, {}).heading();
  for (const auto& group : profile.windows) {
    for (std::size_t d = 0; d < group.energies.size() && d < profile.domains.size(); ++d) {
      csv += row_of(group, group.energies[d], profile.domains[d].domain).line();
    }
  }
  return csv;
}

std::string activity_to_csv(const std::vector<model::ActivityProfile>& profiles,
                            const ActivityOptions& options) {
  const model::ActivityRow none;
  std::string csv = heading(ActivityLine{&none}, model::ActivityProfile{}, options);
  for (const auto& profile : profiles) {
    for (const auto& row : view_of(profile, options).lines) csv += line(row, profile, options);
  }
  return csv;
}

std::string bench_to_csv(const std::vector<BenchResult>& results) {
  std::string csv =
      "workload,mode,batch,dtype,device,steady,iterations,latency_seconds,mean_seconds,p50_seconds,"
      "p90_seconds,p99_seconds,macs,parameters,phase,unit,count,energy_joules,interval_low_joules,"
      "interval_high_joules,repeatability_joules,provenance,rest_joules,held_joules,active_joules,"
      "active_interval_low_joules,active_interval_high_joules,active_repeatability_joules,"
      "total_joules,total_interval_low_joules,total_interval_high_joules,"
      "total_repeatability_joules,total_provenance,mean_watts,peak_watts,sm_clock_hertz,"
      "temperature_celsius\n";
  for (const auto& result : results) {
    const auto& b = result.bench;
    const auto& l = b.latency;
    const auto number = [](const std::optional<std::uint64_t>& n) {
      return n ? std::to_string(*n) : std::string();
    };
    const std::string head = joined(
        {text_field(b.workload), b.mode, std::to_string(b.batch), b.dtype, b.device,
         b.steady ? "true" : "false", std::to_string(b.iterations), field(l.median), field(l.mean),
         field(l.p50), field(l.p90), field(l.p99), number(b.macs), number(b.parameters)});
    if (!result.energy) {
      csv += head + ",,iteration," + std::to_string(b.iterations) +
             ",,,,,unavailable,,,,,,,,,,,,,,,\n";
      continue;
    }
    const std::string foot = of_window(*result.energy);
    for (const auto& row : bench_rows(b, *result.energy)) {
      csv += joined({head + ',' + text_field(row.phase), text_field(row.unit),
                     fixed_decimal(row.count), figures(row.device), joules(row.rest),
                     joules(row.held), active(row.active), figures(row.total), foot}) +
             '\n';
    }
  }
  return csv;
}

}  // namespace jouleprof::report
