#include <cstddef>
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

Result<std::string> run_processes(const Run& run, const Part& part, const FormatOptions&) {
  const auto& profile = run.profile(part);
  if (!profile) return tl::unexpected(profile.error());
  return processes_to_csv(*profile);
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

// A unit of a case. `energy`: null where the case has none.
CsvColumns bench_line(const model::BenchCase& b, const BenchRow& row,
                      const analysis::BenchEnergy* energy) {
  CsvColumns line;
  // Nine decimals: one token may take less than a microjoule.
  const auto add = [&line](std::string_view name, const Value& value, int decimals = 9) {
    line(name, value, "", "", {.decimals = decimals});
  };
  const auto joules_of = [](const std::optional<JoulesPer>& j) {
    return j ? std::optional(j->joules) : std::nullopt;
  };
  const auto add_joules = [&](const std::string& of, const std::optional<JoulesPer>& j,
                              const std::string& name) {
    add(name, joules_of(j));
    add(of + "interval_low_joules", j ? std::optional(j->low()) : std::nullopt);
    add(of + "interval_high_joules", j ? std::optional(j->high()) : std::nullopt);
    add(of + "repeatability_joules", j ? std::optional(j->repeatability) : std::nullopt);
  };
  const auto provenance_of = [](const std::optional<JoulesPer>& j) {
    return j ? to_string(j->provenance) : std::string_view();
  };
  const auto& l = b.latency;
  add("workload", b.workload);
  add("mode", b.mode);
  add("batch", b.batch);
  add("dtype", b.dtype);
  add("device", b.device);
  add("steady", b.steady);
  add("iterations", b.iterations);
  add("latency_seconds", l.median);
  add("mean_seconds", l.mean);
  add("p50_seconds", l.p50);
  add("p90_seconds", l.p90);
  add("p99_seconds", l.p99);
  add("macs", b.macs);
  add("parameters", b.parameters);
  add("phase", row.phase);
  add("unit", energy != nullptr ? row.unit : "iteration");
  add("count", energy != nullptr ? Value(row.count) : Value(b.iterations), 6);
  add_joules("", row.device, "energy_joules");
  add("provenance", energy != nullptr ? provenance_of(row.device) : "unavailable");
  add("rest_joules", joules_of(row.rest));
  add("held_joules", joules_of(row.held));
  add_joules("active_", row.active, "active_joules");
  add_joules("total_", row.total, "total_joules");
  add("total_provenance", provenance_of(row.total));
  // Of the device that does the work, in the case's window.
  const auto* const domain =
      energy != nullptr && energy->device ? &energy->profile.domains[*energy->device] : nullptr;
  add("mean_watts", domain != nullptr ? domain->mean_power : std::nullopt);
  add("peak_watts", domain != nullptr ? domain->peak_power : std::nullopt);
  const auto add_gauge = [&](std::string_view name,
                             std::optional<analysis::GaugeSummary> analysis::BenchEnergy::*gauge) {
    const bool is_known = energy != nullptr && energy->*gauge;
    add(name, is_known ? std::optional((energy->*gauge)->mean) : std::nullopt, 6);
  };
  add_gauge("sm_clock_hertz", &analysis::BenchEnergy::sm_clock);
  add_gauge("temperature_celsius", &analysis::BenchEnergy::temperature);
  return line;
}

}  // namespace

extern constinit const Format domains_format{
    .name = "domains",
    .extension = ".domains.csv",
    .shows = "a row for each domain, or of the table of --by",
    .has_tables = true,
    .write = write_domains};

extern constinit const Format csv_format{.name = "csv",
                                         .extension = ".csv",
                                         .shows = "every power reading",
                                         .write = write_readings<write_power_csv>};

extern constinit const Format counters_format{.name = "counters",
                                              .extension = ".counters.csv",
                                              .shows = "every read of an energy counter",
                                              .write = write_readings<write_counter_csv>};

extern constinit const Format gauges_format{.name = "gauges",
                                            .extension = ".gauges.csv",
                                            .shows = "clocks, temperatures, utilisation and limits",
                                            .write = write_readings<write_gauge_csv>};

extern constinit const Format processes_format{.name = "processes",
                                               .extension = ".processes.csv",
                                               .shows = "a row for each process",
                                               .write = write_made<run_processes>};

extern constinit const Format windows_format{.name = "windows",
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
  std::string csv = bench_line({}, {}, nullptr).heading();
  for (const auto& [bench, energy] : results) {
    if (!energy) {
      csv += bench_line(bench, {}, nullptr).line();
      continue;
    }
    for (const auto& row : bench_rows(bench, *energy)) {
      csv += bench_line(bench, row, &*energy).line();
    }
  }
  return csv;
}

}  // namespace jouleprof::report
