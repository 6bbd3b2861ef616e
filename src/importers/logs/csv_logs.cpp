// Logs in CSV that are known by the names of their columns.
//
// Any CSV file, by the names of its columns: --time-column, --power-column, --device-column.
//
// CSV of this tool: what `monitor --format csv` prints, and what `export` writes as csv (power),
// counters and gauges. A row is of one device, or of one sensor of it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "importers/row_log.h"
#include "importers/source_text.h"
#include "model/device/sensor.h"

namespace jouleprof::importers {
namespace {

constexpr std::size_t kLinesBeforeHeader = 100;

struct PowerColumn {
  std::string device;  // empty: of the row
  std::string name;
  std::string unit;  // empty: as the column's name says
};

// "gpu0=board power:mW", without the device or the unit where they need not be said.
PowerColumn parse_power_column(std::string_view text) {
  PowerColumn column;
  const auto equals = text.find('=');
  if (equals != text.npos && kind_of_device(text.substr(0, equals))) {
    column.device = text.substr(0, equals);
    text.remove_prefix(equals + 1);
  }
  const auto colon = text.rfind(':');
  if (colon != text.npos && unit_scale(text.substr(colon + 1), "W")) {
    column.unit = text.substr(colon + 1);
    text = text.substr(0, colon);
  }
  column.name = text;
  return column;
}

constexpr std::array<std::string_view, 5> kPowerUnits{"W", "mW", "uW", "kW", "MW"};
constexpr std::array<std::string_view, 4> kTimeUnits{"s", "ms", "us", "ns"};

// The places of a column among the cells of a header; its name may lack the unit, where none has
// the name as it stands.
std::vector<std::size_t> places_of(const std::vector<std::string_view>& cells,
                                   std::string_view name) {
  for (const bool whole : {true, false}) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if ((whole ? cells[i] : split_name(cells[i]).name) == name) places.push_back(i);
    }
    if (!places.empty()) return places;
  }
  return {};
}

// A tab or a semicolon between the cells becomes a comma.
Result<std::string> with_separator(const SourceText& source, char separator) {
  if (separator == ',') return source.text;
  if (separator == ';') return with_commas(source);
  std::string out;
  for (Lines lines(source.text); lines.next();) {
    bool first = true;
    for (const auto cell : split(lines.text(), separator)) {
      if (!std::exchange(first, false)) out += ',';
      out += csv_field(trim(cell));
    }
    if (lines.ended()) out += '\n';
  }
  return out;
}

class Import {
 public:
  Import(const SourceText& source, const ImportOptions& options)
      : source_(source), options_(options), time_column_(options.time_column) {
    for (const std::string& text : options.power_columns) {
      powers_.push_back(parse_power_column(text));
    }
  }

  Result<model::Recording> run() {
    auto source = from_header();
    if (!source) return forward_error(source);
    constexpr LogTool kTool{.format = "columns", .name = "the named columns"};
    RowLog log(kTool, options_);
    std::size_t place = 0;
    log.on_column = [&](std::string_view name) { return column_of(place++, name, log); };
    if (auto read = log.read(*source); !read) return forward_error(read);
    for (const std::string& name : without_unit_) {
      log.builder().warn(
          fmt::format("column {} is taken to be in watts; name another unit as "
                      "--power-column {}:mW",
                      show(name), name));
    }
    return std::move(log).finish();
  }

 private:
  // The file from its header on, with commas. Errors: invalid_argument for a name that is not in
  // it, or may be of several columns.
  Result<SourceText> from_header() {
    std::vector<std::string_view> nearest;
    for (const char separator : {',', ';', '\t'}) {
      std::string before;
      for (Lines lines(source_.text); lines.next() && lines.number() <= kLinesBeforeHeader;) {
        auto cells = split(lines.text(), separator);
        for (auto& cell : cells) {
          cell = trim(cell);
          if (cell.size() > 1 && cell.starts_with('"') && cell.ends_with('"')) {
            cell = cell.substr(1, cell.size() - 2);
          }
        }
        if (cells.size() > nearest.size()) nearest = cells;
        if (missing(cells).empty()) {
          if (auto one = choose(cells); !one) return forward_error(one);
          const auto begin = static_cast<std::size_t>(lines.text().data() - source_.text.data());
          SourceText found{source_.path, before + source_.text.substr(begin), source_.line_times};
          auto text = with_separator(found, separator);
          if (!text) return forward_error(text);
          found.text = std::move(*text);
          return found;
        }
        before += '\n';
      }
    }
    const std::string name = missing(nearest);
    const bool is_time = name == time_name();
    const auto colon = name.rfind(':');
    const bool is_unit =
        colon != name.npos && !places_of(nearest, std::string_view(name).substr(0, colon)).empty();
    const std::span<const std::string_view> units =
        is_time ? std::span<const std::string_view>(kTimeUnits) : kPowerUnits;
    return fail(Errc::kInvalidArgument,
                is_unit ? fmt::format("{}: {} is no unit of {}; give one of {}", source_.path,
                                      show(name.substr(colon + 1)), is_time ? "time" : "power",
                                      fmt::join(units, ", "))
                        : fmt::format("{}: it has no column {}; it has: {}", source_.path,
                                      show(name), fmt::join(nearest, ", ")));
  }

  // The first of the named columns that is not among the cells.
  std::string missing(const std::vector<std::string_view>& cells) const {
    const auto has = [&](std::string_view name) { return !places_of(cells, name).empty(); };
    for (const PowerColumn& power : powers_) {
      if (!has(power.name)) return power.name;
    }
    for (const std::string& name : {time_name(), options_.device_column}) {
      if (!name.empty() && !has(name)) return name;
    }
    return {};
  }

  // Where the named columns are in the header. Errors: invalid_argument where the power of a device
  // may be in each of several columns, or is in one of no power, or of another device.
  Result<void> choose(const std::vector<std::string_view>& cells) {
    std::vector<std::string> chosen{time_name(), options_.device_column};
    for (const PowerColumn& power : powers_) chosen.push_back(power.name);
    for (const std::string& name : chosen) {
      const auto places = places_of(cells, name);
      if (name.empty() || places.size() < 2) continue;
      std::vector<std::string> names;
      for (const std::size_t i : places) names.push_back(show(cells[i]));
      return fail(Errc::kInvalidArgument,
                  fmt::format("{}: {} may be each of {}; name one of them in full", source_.path,
                              show(name), fmt::join(names, ", ")));
    }
    const auto place_of = [&](const std::string& name) {
      return name.empty() ? std::nullopt : std::optional(places_of(cells, name).front());
    };
    if (auto found = find_time_column(cells); !found) return found;
    time_place_ = place_of(time_name());
    device_place_ = place_of(options_.device_column);
    for (const PowerColumn& power : powers_) {
      const auto places = places_of(cells, power.name);
      const std::string unit = power.unit.empty() ? split_name(cells[places.front()]).unit : "W";
      if (!unit.empty() && !unit_scale(unit, "W")) {
        return fail(Errc::kInvalidArgument,
                    fmt::format("{}: column {} is in {}, which is no unit of power; name a column "
                                "of power, or its unit as --power-column {}:W",
                                source_.path, show(cells[places.front()]), unit, power.name));
      }
      const auto [other, is_new] = by_place_.try_emplace(places.front(), power);
      if (!is_new && other->second.device != power.device) {
        return fail(Errc::kInvalidArgument,
                    fmt::format("{}: column {} is named for {} and for {}; name a column of its "
                                "own for each device",
                                source_.path, show(cells[places.front()]), other->second.device,
                                power.device));
      }
    }
    return {};
  }

  // Without --time-column and --interval, rows have the times of the column that is called so.
  // Errors: invalid_argument where there are several.
  Result<void> find_time_column(const std::vector<std::string_view>& cells) {
    if (!time_column_.empty() || options_.interval) return {};
    std::vector<std::string> found;
    for (const auto cell : cells) {
      if (is_time_name(plain_name(split_name(cell).name))) found.emplace_back(cell);
    }
    if (found.size() > 1) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("{}: its times may be in each of {}; name one with --time-column, or "
                              "give the distance of its rows with --interval",
                              source_.path, fmt::join(found, ", ")));
    }
    if (found.size() == 1) time_column_ = found.front();
    return {};
  }

  std::string time_name() const { return time_unit().first; }
  // "elapsed:ms"
  std::pair<std::string, std::string> time_unit() const {
    const std::string& name = time_column_;
    const auto colon = name.rfind(':');
    if (colon != name.npos && std::ranges::find(kTimeUnits, std::string_view(name).substr(
                                                                colon + 1)) != kTimeUnits.end()) {
      return {name.substr(0, colon), name.substr(colon + 1)};
    }
    return {name, {}};
  }

  std::optional<LogColumn> column_of(std::size_t place, std::string_view name, RowLog& log) {
    if (place == device_place_) return LogColumn{LogRole::kDevice, {}, {}, 0};
    if (place == time_place_) {
      const auto [time, given] = time_unit();
      std::string unit = given.empty() ? split_name(name).unit : given;
      if (std::ranges::find(kTimeUnits, unit) == kTimeUnits.end()) {
        const auto note = [&, name = time](std::string_view taken) {
          return fmt::format("column {} is taken to {}; name another unit as --time-column {}:ms",
                             show(name), taken, name);
        };
        log.note_of_elapsed = note("be in seconds");
        log.note_of_size = note("count from 1970, in a unit by the size of its numbers");
        unit.clear();
      }
      return LogColumn{LogRole::kStamp, std::move(unit), {}, 0};
    }
    const auto found = by_place_.find(place);
    if (found == by_place_.end()) return std::nullopt;
    const PowerColumn& power = found->second;
    LogColumn column{LogRole::kValue, power.unit, power.device, 0};
    if (column.unit.empty()) column.unit = split_name(name).unit;
    if (column.unit.empty()) {
      without_unit_.push_back(power.name);
      column.unit = "W";
    }
    if (column.device.empty() && options_.device_column.empty()) column.device = "gpu0";
    column.sensor = log.sensor({model::SensorKind::kPowerInstant, std::string(name)});
    return column;
  }

  const SourceText& source_;
  const ImportOptions& options_;
  std::string time_column_;  // with its unit, as --time-column has it; empty: none
  std::vector<PowerColumn> powers_;
  std::map<std::size_t, PowerColumn> by_place_;
  std::optional<std::size_t> time_place_, device_place_;
  std::vector<std::string> without_unit_;
};

Result<model::Recording> read_named_csv(std::span<const SourceText> sources,
                                        const ImportOptions& options) {
  return Import(sources.front(), options).run();
}

using enum model::SensorKind;
namespace gauge = model::gauge;

constexpr std::array<LogField, 27> kOwnFields{
    {{"time_unix_seconds", LogRole::kStamp},
     {"time_seconds", LogRole::kStamp},
     {"elapsed_seconds", LogRole::kStamp},
     {"device", LogRole::kDevice},
     {"domain", LogRole::kDomain},
     {"name", LogRole::kName},
     {"provenance", LogRole::kProvenance},
     {"work_begin_unix_seconds", LogRole::kWorkBegin},
     {"work_end_unix_seconds", LogRole::kWorkEnd},
     {"sensor", LogRole::kSensor},
     {"quantity", LogRole::kSensor},
     {"power_watts", LogRole::kValue, "W", kPowerInstant, "power_watts"},
     {"energy_joules", LogRole::kValue, "J", kEnergyCounter, "energy_joules"},
     {"value", LogRole::kValue, "", kGauge, "value"},
     {gauge::kPowerLimit, LogRole::kValue, "W", kGauge, gauge::kPowerLimit},
     {gauge::kTemperature, LogRole::kValue, "C", kGauge, gauge::kTemperature},
     {gauge::kMemoryTemperature, LogRole::kValue, "C", kGauge, gauge::kMemoryTemperature},
     {gauge::kFanSpeed, LogRole::kValue, "", kGauge, gauge::kFanSpeed},
     {"utilisation_ratio", LogRole::kValue, "", kGauge, gauge::kGpuUtilisation},
     {gauge::kMemoryUtilisation, LogRole::kValue, "", kGauge, gauge::kMemoryUtilisation},
     {gauge::kEncoderUtilisation, LogRole::kValue, "", kGauge, gauge::kEncoderUtilisation},
     {gauge::kDecoderUtilisation, LogRole::kValue, "", kGauge, gauge::kDecoderUtilisation},
     {gauge::kJpegUtilisation, LogRole::kValue, "", kGauge, gauge::kJpegUtilisation},
     {gauge::kOfaUtilisation, LogRole::kValue, "", kGauge, gauge::kOfaUtilisation},
     {gauge::kSmClock, LogRole::kValue, "Hz", kGauge, gauge::kSmClock},
     {gauge::kMemoryClock, LogRole::kValue, "Hz", kGauge, gauge::kMemoryClock},
     {gauge::kMemoryUsed, LogRole::kValue, "B", kGauge, gauge::kMemoryUsed}}};

constexpr LogTool kOwnTool{.format = "jouleprof",
                           .name = "jouleprof",
                           .advice = "export --format csv or --format counters has power",
                           .fields = kOwnFields,
                           .has_row_a_sensor = true,
                           .reads_counters_seldom = true};

// Of windows, domains, processes or kernels: figures, of which no recording can be made again.
bool is_table_of_figures(std::string_view text) {
  return has_columns(text, {{"provenance"}, {"interval_low_joules", "own_pid"}});
}

bool recognises_own_csv(std::string_view text) {
  return is_table_of_figures(text) ||
         has_columns(text, {{"time_unix_seconds"}, {"device"}, {"domain"}});
}

Result<model::Recording> read_own_csv(std::span<const SourceText> sources,
                                      const ImportOptions& options) {
  if (is_table_of_figures(sources.front().text)) {
    return fail(Errc::kUnsupported,
                fmt::format("{}: a table of figures that `jouleprof export` wrote. Without its "
                            "readings they would lose their intervals: import the *.jprof's "
                            "export of csv or counters, or report the *.jprof itself",
                            sources.front().path));
  }
  std::vector<LogField> fields(kOwnFields.begin(), kOwnFields.end());
  LogTool tool = kOwnTool;
  if (has_columns(sources.front().text, {{"elapsed_seconds"}})) {
    // The power of `monitor` is computed from its energy.
    std::erase_if(fields, [](const LogField& field) { return field.name == "power_watts"; });
    tool = {.format = "jouleprof", .name = "jouleprof monitor"};
  }
  tool.fields = fields;
  RowLog log(tool, options);
  for (const SourceText& source : sources) {
    if (auto read = log.read(source); !read) return forward_error(read);
  }
  return std::move(log).finish();
}

}  // namespace

// The header is the first line that has all named columns; commas, semicolons or tabs stand between
// the cells.
extern const Importer kNamedCsvImporter{
    {"columns", "any CSV file, by --power-column and --time-column"},
    false,
    [](std::string_view) { return false; },
    read_named_csv};

extern const Importer kOwnCsvImporter{
    {"jouleprof", "CSV of this tool: monitor --format csv; export --format csv, counters, gauges"},
    true,
    recognises_own_csv,
    read_own_csv};

}  // namespace jouleprof::importers
