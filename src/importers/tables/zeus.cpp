// What Zeus writes: the log of its ZeusMonitor, its table of training runs under power limits, and
// the power log of its old monitor program.
//
// The log: start_time,window_name,elapsed_time,gpuN_energy... Seconds and joules, one row a window,
// written when the window ends; windows may overlap and nest. start_time counts from 1970, or from
// the machine's boot in older versions.
//
// The table of runs: some columns that name the run, then power_limit (W), time_per_epoch (s) and
// average_power (W), in any order. Each row is one epoch with the energy average_power x
// time_per_epoch.
//
// The power log of zeus_monitor: "Time,Power[,Temp][,SMFreq][,Mem]", one GPU a
// file. Time is UTC with nanoseconds, SMFreq in MHz, Mem in bytes. A name or a value may carry its
// unit: "Power [W]", "32402 mW", "1380 MHz". Without one, Power is in mW, as
// nvmlDeviceGetPowerUsage gives it, or in W, which later versions and ZeusProfilingService write.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/json/json.h"
#include "base/median.h"
#include "base/text.h"
#include "importers/builder.h"
#include "importers/import.h"
#include "importers/row_log.h"
#include "importers/source_text.h"
#include "importers/window_table.h"
#include "model/device/sensor.h"

namespace jouleprof::importers {
namespace {

constexpr double kMostWatts = 1e5;

constexpr std::array<TableField, 4> kWindowFields{
    {{.name = "start_time", .role = TableRole::kStart, .is_needed = true, .unit = "s"},
     {.name = "window_name", .role = TableRole::kName, .is_needed = true},
     {.name = "elapsed_time", .role = TableRole::kDuration, .is_needed = true},
     {.name = "gpu#_energy",
      .role = TableRole::kEnergy,
      .is_needed = true,
      .device = "gpu#",
      .product = "GPU #"}}};

// Whether the cell ends in a time near `start`, as the first cell of a row that follows without a
// line end.
bool ends_in_time(std::string_view cell, const LogTime& start) {
  constexpr std::size_t kShortest = 8, kLongest = 40;
  constexpr Duration kApart = std::chrono::hours{24 * 3650};
  for (std::size_t length = kShortest; length <= std::min(cell.size(), kLongest); ++length) {
    const std::string_view end = cell.substr(cell.size() - length);
    const auto time = end.find_first_of(".-") == end.npos ? std::nullopt : parse_log_time(end);
    if (time && time->kind == start.kind && std::chrono::abs(time->at - start.at) < kApart) {
      return true;
    }
  }
  return false;
}

// Our own module quotes names with commas. Zeus writes them without quotes: they are what the other
// fields leave. It writes those as Python's floats, with a point or an exponent: where one has
// neither, the commas may be decimal ones, and the row stays as it is, with too many fields. So
// does one that was cut off and runs into the next: a whole row follows from a second time on.
std::vector<std::string> window_cells(std::string_view line, std::size_t columns) {
  if (line.find(",\"") != line.npos) {
    if (auto quoted = csv_cells(line); quoted.size() == columns) return quoted;
  }
  std::vector<std::string> cells;
  for (const auto cell : split(line, ',')) cells.emplace_back(trim(cell));
  const auto is_whole = [](const std::string& cell) {
    return !cell.empty() && cell.find_first_not_of("0123456789") == cell.npos;
  };
  if (cells.size() > columns && columns > 2) {
    const auto numbers = cells.end() - static_cast<std::ptrdiff_t>(columns - 2);
    if (is_whole(cells[0]) || std::any_of(numbers, cells.end(), is_whole)) return cells;
    const auto start = parse_log_time(cells[0]);
    const auto begins = [&](std::size_t i) { return ends_in_time(cells[i], *start); };
    if (start && runs_into_next(cells, columns, begins)) return cells;
  }
  while (cells.size() > columns && columns > 2) {
    cells[1] += "," + (cells[2].empty() ? cells[2] : " " + cells[2]);
    cells.erase(cells.begin() + 2);
  }
  return cells;
}

// Zeus's power limit optimizer names its windows after the limit that it tries.
std::optional<std::string> add_power_limit(WindowTable&, TableWindow& row) {
  constexpr std::string_view kPrefix = "__GlobalPowerLimitOptimizer_";
  if (!row.start) return "it has no start time";
  if (!row.window.name.starts_with(kPrefix)) return std::nullopt;
  const std::string limit = row.window.name.substr(kPrefix.size());
  if (parse_number(limit)) row.window.labels.push_back({"power_limit_watts", limit});
  return std::nullopt;
}

constexpr TableTool kWindows{
    .format = "zeus-windows",
    .row = "window",
    .reason = "the file holds the energy of whole windows, not the course of power",
    .fields = kWindowFields,
    .cells = window_cells,
    .check = add_power_limit,
    .calendar = utc_to_real};

bool recognises_zeus_windows(std::string_view text) {
  return has_columns(text, {{"window_name"}, {"elapsed_time"}});
}

constexpr std::array<TableField, 3> kSweepFields{
    {{.name = "power_limit",
      .role = TableRole::kLabel,
      .is_needed = true,
      .label = "power_limit_watts"},
     {.name = "time_per_epoch", .role = TableRole::kDuration, .is_needed = true},
     {.name = "average_power", .role = TableRole::kNumber, .is_needed = true}}};

std::optional<std::string> add_epoch_energy(WindowTable& table, TableWindow& row) {
  const double watts = row.numbers["average_power"];
  if (row.window.duration <= Duration::zero()) return "time_per_epoch is '0'";
  if (!(watts > 0) || watts > kMostWatts) return fmt::format("average_power is '{:g}'", watts);
  if (watts * seconds(row.window.duration) > 1e12) return "its energy cannot be";
  for (const auto& label : row.window.labels) {
    if (label.name != "power_limit_watts") {
      row.window.name += (row.window.name.empty() ? "" : " ") + label.value;
      continue;
    }
    const auto limit = parse_number(label.value);
    if (!limit || *limit <= 0) return fmt::format("power_limit is {}", show(label.value));
  }
  row.window.energies.push_back(
      {table.domain("gpu0", "GPU of the table"), Power::watts(watts) * row.window.duration});
  return std::nullopt;
}

Result<void> warn_of_runs(WindowTable& table) {
  table.builder().warn("the table does not say which GPU it is of, nor when the runs were made");
  return {};
}

constexpr TableTool kSweep{
    .format = "zeus-sweep",
    .row = "run",
    .reason = "the file holds the energy of whole epochs, not the course of power",
    .fields = kSweepFields,
    .keeps_other_columns = true,
    .check = add_epoch_energy,
    .complete = warn_of_runs};

bool recognises_zeus_sweep(std::string_view text) {
  return has_columns(text, {{"power_limit"}, {"time_per_epoch", "average_power"}});
}

using enum model::SensorKind;
namespace gauge = model::gauge;

constexpr std::array<LogField, 6> kMonitorFields{
    {{"time", LogRole::kStamp},
     {"power", LogRole::kValue, "mW", kPowerAverage, "nvmlDeviceGetPowerUsage"},
     {"temp", LogRole::kValue, "C", kGauge, gauge::kTemperature},
     {"smfreq", LogRole::kValue, "MHz", kGauge, gauge::kSmClock},
     {"mem", LogRole::kValue, "B", kGauge, gauge::kMemoryUsed},
     {"provenance", LogRole::kProvenance}}};  // of our own

constexpr LogTool kMonitorTool{.format = "zeus-monitor",
                               .name = "zeus_monitor",
                               .advice = "its header needs the columns Time and Power",
                               .fields = kMonitorFields,
                               .times_are_utc = true};
// The median of the numbers under Power that have no unit; nothing where the header has it.
std::optional<double> typical_power(std::span<const SourceText> sources) {
  std::vector<double> values;
  for (const SourceText& source : sources) {
    const auto place = find_column(csv_header(source.text), "Power");
    for (Lines lines(source.text); place && lines.next();) {
      const auto cells = split_csv(lines.text());
      if (!cells || *place >= cells->size()) continue;
      if (const auto value = parse_number(trim((*cells)[*place]))) values.push_back(*value);
    }
  }
  if (values.empty()) return std::nullopt;
  return upper_median(std::move(values));
}

bool recognises_zeus_monitor(std::string_view text) {
  const auto header = csv_header(text);
  return find_column(header, "Time") && std::ranges::any_of(header, [](const std::string& name) {
           return split_unit(name).word == "Power";
         });
}

Result<model::Recording> read_zeus_monitor(std::span<const SourceText> sources,
                                           const ImportOptions& options) {
  constexpr double kMostOfABoard = 1500;  // watts
  const auto typical = typical_power(sources);
  const bool in_watts = typical && *typical <= kMostOfABoard;
  auto fields = kMonitorFields;
  if (in_watts) fields[1].unit = "W";
  LogTool tool = kMonitorTool;
  tool.fields = fields;
  RowLog log(tool, options);
  if (typical) {
    log.builder().warn(
        fmt::format("the log does not state the unit of Power: {:g} is taken to be in {}", *typical,
                    in_watts ? "W" : "mW"));
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto before = sources.first(i);
    const auto alike = std::ranges::find(before, sources[i].text, &SourceText::text);
    if (alike != before.end()) {
      log.builder().warn(fmt::format(
          "{} holds what {} holds: if it is a copy of it, leave it out, or its energy counts twice",
          sources[i].path, alike->path));
    }
    if (auto read = log.read(sources[i], fmt::format("gpu{}", i)); !read) {
      return forward_error(read);
    }
  }
  log.builder().warn(
      sources.size() == 1
          ? "the log does not say which GPU it is of: it is called gpu0"
          : "the logs do not say which GPUs they are of: they are numbered as given");
  log.builder().warn(
      "the power was polled: a mean over the last second on Ampere and newer boards, over 10 to "
      "100 ms on older ones, and the log does not say which");
  return std::move(log).finish();
}

}  // namespace

extern const Importer kZeusWindowsImporter{
    {"zeus-windows", "window log of Zeus's ZeusMonitor (start_time,window_name,elapsed_time,...)"},
    false,
    recognises_zeus_windows,
    read_table<kWindows>};

extern const Importer kZeusSweepImporter{
    {"zeus-sweep", "Zeus's table of runs (power_limit,time_per_epoch,average_power)"},
    false,
    recognises_zeus_sweep,
    read_table<kSweep>};

// The profile that Zeus's GlobalPowerLimitOptimizer writes: a list of power limits with the joules
// of all GPUs and the seconds of the same steps. Each becomes a window.
namespace {

Result<model::Recording> read_zeus_profile(std::span<const SourceText> sources,
                                           const ImportOptions&) {
  const SourceText& source = sources.front();
  const auto document = parse_json(source.text, source.path, Errc::kCorrupt);
  if (!document) return forward_error(document);
  RecordingBuilder builder("zeus-profile");
  const auto domain = builder.add_domain(model::DomainKind::kGpu, "gpu0", "GPUs of the profile");
  builder.domain(domain).unavailable_reason =
      "the file holds the energy of whole steps, not the course of power";
  auto& windows = builder.recording().imported_windows;
  JsonErrors errors{source.path, {}, Errc::kCorrupt};
  JsonReader reader(*document, "", errors);
  reader.each(
      "measurements",
      [&](JsonReader& entry) {
        double watts = 0, joules = 0, time = 0;
        entry.require("power_limit", watts, {1, 1e5});
        entry.require("energy", joules, {1e-6, 1e12});
        entry.require("time", time, {1e-9, 1e9});
        model::ImportedWindow window;
        window.name = "profiled steps";
        window.duration = duration_of(time);
        window.energies.push_back({domain, Energy::joules(joules)});
        window.labels.push_back({"power_limit_watts", fmt::format("{:g}", watts)});
        windows.push_back(std::move(window));
      },
      true);
  if (errors.first) return tl::unexpected(*errors.first);
  if (windows.empty()) {
    return fail(Errc::kUnavailable, fmt::format("{}: a profile without measurements", source.path));
  }
  builder.warn("the profile does not say which GPU and which work it is of");
  return std::move(builder).finish_windows(source.path);
}

bool recognises_zeus_profile(std::string_view text) {
  const std::string_view begin = text.substr(0, 500);
  return begin.find("\"measurements\"") != std::string_view::npos &&
         begin.find("\"power_limit\"") != std::string_view::npos;
}

}  // namespace

extern const Importer kZeusProfileImporter{
    {"zeus-profile", "Zeus's profile of power limits (JSON)"},
    false,
    recognises_zeus_profile,
    read_zeus_profile};

extern const Importer kZeusMonitorImporter{
    {"zeus-monitor", "power log of Zeus's zeus_monitor (Time,Power); several files: one a GPU"},
    true,
    recognises_zeus_monitor,
    read_zeus_monitor};

}  // namespace jouleprof::importers
