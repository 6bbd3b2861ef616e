// The power log of the old zeus_monitor program: "Time,Power[,Temp][,SMFreq][,Mem]", one GPU a
// file. Time is UTC with nanoseconds, Power in mW (nvmlDeviceGetPowerUsage), SMFreq in MHz, Mem in
// bytes. A name or a value may carry its unit: "Power [W]", "32402 mW", "1380 MHz".
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "importers/builder.h"
#include "importers/csv_table.h"
#include "importers/importer.h"
#include "importers/stamps.h"
#include "model/device/gauge_names.h"

namespace jouleprof::importers {
namespace {

struct Unit {
  std::string_view name;
  double scale;  // to watts, degrees, hertz or bytes
};

struct Column {
  std::string_view name;
  std::string_view gauge;
  std::array<Unit, 4> units;  // the first one is meant where none is written
};

constexpr Column kPower{"Power", "", {{{"mW", 1e-3}, {"W", 1}, {"kW", 1e3}, {}}}};
constexpr std::array<Column, 3> kGauges{
    {{"Temp", model::gauge::kTemperature, {{{"C", 1}, {}, {}, {}}}},
     {"SMFreq", model::gauge::kSmClock, {{{"MHz", 1e6}, {"GHz", 1e9}, {"Hz", 1}, {}}}},
     {"Mem",
      model::gauge::kMemoryUsed,
      {{{"B", 1}, {"KiB", 1024.0}, {"MiB", 1024.0 * 1024.0}, {"GiB", 1024.0 * 1024.0 * 1024.0}}}}}};

struct Row {
  Duration stamp{};
  std::size_t file = 0;
  std::optional<double> watts;
  std::array<std::optional<double>, kGauges.size()> gauges;
};

struct Log {
  std::vector<Row> rows;
  std::optional<std::string> cut_off;
};

// A column's place, and the unit in its header.
struct Place {
  std::size_t column = 0;
  std::string_view unit;
};

std::optional<Place> find_place(const std::vector<std::string>& header, std::string_view name) {
  for (std::size_t i = 0; i < header.size(); ++i) {
    const auto [word, unit] = split_unit(header[i]);
    if (word == name) return Place{i, unit};
  }
  return std::nullopt;
}

Result<std::optional<double>> parse_cell(const CsvRows& rows, std::string_view cell,
                                         const Column& column, const Place& place) {
  cell = trim(cell);
  if (cell.empty()) return std::optional<double>{};
  const auto [word, own_unit] = split_unit(cell);
  const auto number = parse_number(word);
  if (!number) return rows.fail_at(fmt::format("{} is not a number", show(cell)));
  const std::string_view name = own_unit.empty() ? place.unit : own_unit;
  if (name.empty()) return std::optional<double>(*number * column.units.front().scale);
  const auto unit = std::find_if(column.units.begin(), column.units.end(),
                                 [&](const Unit& u) { return !u.name.empty() && u.name == name; });
  if (unit == column.units.end()) {
    return rows.fail_at(fmt::format("{} is no unit of {}", show(name), column.name));
  }
  return std::optional<double>(*number * unit->scale);
}

Result<Log> read_log(const SourceText& source, std::size_t file) {
  CsvRows rows(source);
  const auto time = rows.column("Time");
  const auto power = find_place(rows.header(), kPower.name);
  if (!time) return forward_error(time);
  if (!power) return rows.missing_column(kPower.name);
  std::array<std::optional<Place>, kGauges.size()> gauges;
  for (std::size_t i = 0; i < kGauges.size(); ++i) {
    gauges[i] = find_place(rows.header(), kGauges[i].name);
  }

  Log log;
  while (rows.next()) {
    const auto fields = split(rows.text(), ',');
    if (auto fit = rows.check_fields(fields.size()); !fit) return forward_error(fit);
    Row row;
    row.file = file;
    const auto stamp = parse_calendar_time(trim(fields[*time]));
    if (!stamp) {
      return rows.fail_at(
          fmt::format("{} is no time such as '2026-11-21 03:13:59.5'", show(fields[*time])));
    }
    row.stamp = *stamp;
    auto watts = parse_cell(rows, fields[power->column], kPower, *power);
    if (!watts) return forward_error(watts);
    row.watts = *watts;
    for (std::size_t i = 0; i < kGauges.size(); ++i) {
      if (!gauges[i]) continue;
      auto value = parse_cell(rows, fields[gauges[i]->column], kGauges[i], *gauges[i]);
      if (!value) return forward_error(value);
      row.gauges[i] = *value;
    }
    log.rows.push_back(row);
  }
  log.cut_off = rows.cut_off();
  if (log.rows.empty()) {
    return fail(Errc::kUnavailable, fmt::format("{}: a header, and no row under it", source.path));
  }
  return log;
}

// The files' rows in the order of time. One file's own order is kept: its clock may have been set.
Result<std::vector<Row>> join(std::vector<Log>& logs, std::span<const SourceText> sources) {
  if (logs.size() == 1) return std::move(logs.front().rows);
  std::vector<Row> rows;
  const auto earlier = [](const Row& a, const Row& b) { return a.stamp < b.stamp; };
  for (std::size_t i = 0; i < logs.size(); ++i) {
    if (!std::is_sorted(logs[i].rows.begin(), logs[i].rows.end(), earlier)) {
      return fail(
          Errc::kCorrupt,
          fmt::format("{}: its time stamps go back, so it cannot be merged with other logs; "
                      "import it by itself",
                      sources[i].path));
    }
    rows.insert(rows.end(), logs[i].rows.begin(), logs[i].rows.end());
  }
  std::stable_sort(rows.begin(), rows.end(), earlier);
  return rows;
}

struct Gpu {
  model::SensorId power{};
  std::array<std::optional<model::SensorId>, kGauges.size()> gauges;
};

Result<model::Recording> read_zeus_monitor(std::span<const SourceText> sources,
                                           const ImportOptions& options) {
  RecordingBuilder builder("zeus-monitor");
  std::vector<Log> logs;
  std::vector<Gpu> gpus;
  for (const SourceText& source : sources) {
    auto log = read_log(source, logs.size());
    if (!log) return forward_error(log);
    if (log->cut_off) builder.set_cut_off(*log->cut_off);
    const auto domain =
        builder.add_domain(model::DomainKind::kGpu, fmt::format("gpu{}", logs.size()),
                           fmt::format("GPU of {}", source.path));
    gpus.push_back(
        {builder.add_sensor(domain, model::SensorKind::kPowerAverage, "nvmlDeviceGetPowerUsage"),
         {}});
    logs.push_back(std::move(*log));
  }
  auto rows = join(logs, sources);
  if (!rows) return forward_error(rows);

  std::vector<Stamp> stamps;
  for (const Row& row : *rows) {
    if (stamps.empty() || row.stamp != stamps.back().at) stamps.push_back({row.stamp, false});
  }
  const Layout layout = lay_out(stamps);
  builder.set_clock(layout, utc_to_real);
  std::size_t tick = 0;
  for (const Row& row : *rows) {
    if (row.stamp != stamps[tick].at) ++tick;
    const HostTime at = layout.times[tick];
    Gpu& gpu = gpus[row.file];
    builder.add_power(gpu.power, at, row.watts);
    for (std::size_t i = 0; i < kGauges.size(); ++i) {
      if (!row.gauges[i]) continue;
      if (!gpu.gauges[i]) {
        gpu.gauges[i] = builder.add_sensor(
            builder.recording().sensors[static_cast<std::size_t>(gpu.power)].domain,
            model::SensorKind::kGauge, std::string(kGauges[i].gauge));
      }
      builder.add_gauge(*gpu.gauges[i], at, *row.gauges[i]);
    }
  }
  builder.warn(sources.size() == 1
                   ? "the log does not say which GPU it is of: it is called gpu0"
                   : "the logs do not say which GPUs they are of: they are numbered as given");
  builder.warn(
      "the power was polled: a mean over the last second on Ampere and newer boards, over "
      "10 to 100 ms on older ones, and the log does not say which");
  if (options.interval) {
    builder.warn("--interval is not used: the log has its own time stamps");
  }
  return std::move(builder).finish(sources.front().path, layout.times.front(), layout.times.back());
}

bool recognises_zeus_monitor(std::string_view text) {
  const auto header = csv_header(text);
  return find_column(header, "Time") && find_place(header, kPower.name);
}

}  // namespace

const Importer kZeusMonitorImporter{
    {"zeus-monitor", "power log of Zeus's zeus_monitor (Time,Power); several files: one a GPU"},
    true,
    recognises_zeus_monitor,
    read_zeus_monitor};

}  // namespace jouleprof::importers
