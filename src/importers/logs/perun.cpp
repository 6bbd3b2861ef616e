// What `perun export FILE.hdf5 csv` writes: one row a reading of a sensor, with its unit and its
// scale, and the seconds since the run began; one sensor after the other. Rows that are no power
// and no energy (utilisation, bytes) are left out. These are perun's readings: neither its `pue`
// nor its `power_overhead`, which are in the energies of its reports, is in them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "importers/row_log.h"
#include "importers/source_text.h"

namespace jouleprof::importers {
namespace {

using model::DomainKind;

constexpr LogTool kTool{.format = "perun",
                        .name = "perun",
                        .advice = "perun had no sensor of power or energy on this machine",
                        .has_row_a_sensor = true};

constexpr std::array<std::string_view, 8> kColumns{"run id", "hostname",  "device_group", "sensor",
                                                   "unit",   "magnitude", "timestep",     "value"};
enum Column { kRun, kHost, kGroup, kSensor, kUnit, kMagnitude, kTime, kValue };

using Places = std::array<std::size_t, kColumns.size()>;

std::optional<Places> places_of(const Cells& header) {
  Places places{};
  for (std::size_t c = 0; c < kColumns.size(); ++c) {
    const auto found = find_column(header, kColumns[c]);
    if (!found) return std::nullopt;
    places[c] = *found;
  }
  return places;
}

bool recognises_perun(std::string_view text) { return places_of(csv_header(text)).has_value(); }

// "CUDA:0", "cpu_0_package-0", "ram_0_dram": gpu0, package-0, dram-0.
LogDevice device_of(const std::string& group, const std::string& sensor) {
  LogDevice device{DomainKind::kPlatform, sensor, sensor};
  if (const auto kind = kind_of_device(group)) device.kind = *kind;
  if (device.kind == DomainKind::kGpu) {
    const auto colon = sensor.find(':');
    const auto end = sensor.find_first_not_of("0123456789", colon == sensor.npos ? 0 : colon + 1);
    const std::string number =
        colon == sensor.npos ? "" : sensor.substr(colon + 1, end - colon - 1);
    if (!number.empty()) device.device = device.name = "gpu" + number;
    return device;
  }
  const auto parts = split(sensor, '_');
  if (parts.size() == 3 && parts[0] == group && parse_integer(parts[1])) {
    device.device = parts[2];
    if (!device.device.ends_with(parts[1])) device.device += fmt::format("-{}", parts[1]);
  }
  return device;
}

constexpr Duration kLongest = std::chrono::hours{24 * 3650};  // of a run, and of all

struct Reader {
  RowLog& log;
  const Places& places;
  std::set<std::string, std::less<>> hosts;
  std::map<std::string, std::size_t> others;                       // rows of another unit
  std::map<std::string, std::vector<LogRow>, std::less<>> by_run;  // in the order of the file
  std::vector<std::string> runs;

  // Why the row is left out; nothing where it counts or is of something else.
  std::optional<std::string> take(const Cells& cells, std::size_t columns, std::size_t line) {
    if (cells.size() != columns) {
      return fmt::format("{} fields under a header of {}", cells.size(), columns);
    }
    const auto cell = [&](Column column) -> const std::string& { return cells[places[column]]; };
    const std::string& unit = cell(kUnit);
    if (unit != "W" && unit != "J") {
      ++others[unit];
      return std::nullopt;
    }
    const auto scale = parse_number(cell(kMagnitude)), value = parse_number(cell(kValue));
    const auto time = parse_number(cell(kTime));
    if (!time || *time < 0 || *time > seconds(kLongest)) return show(cell(kTime)) + " is no time";
    if (!scale || *scale < 1e-12 || *scale > 1e12) return show(cell(kMagnitude)) + " is no scale";
    if (!value && !is_absent(cell(kValue))) return show(cell(kValue)) + " is no number";
    hosts.insert(cell(kHost));
    const std::string& sensor = cell(kSensor);
    LogRow row;
    row.time = LogTime{duration_of(*time), LogTime::Kind::kElapsed};
    row.line = line;
    LogDevice device = device_of(cell(kGroup), sensor);
    const std::string key = device.device;
    row.device = log.device(key, std::move(device));
    row.values.emplace_back(log.sensor({unit == "W" ? model::SensorKind::kPowerInstant
                                                    : model::SensorKind::kEnergyCounter,
                                        "perun " + sensor}),
                            value ? std::optional(*value * *scale) : std::nullopt);
    auto& rows = by_run[cell(kRun)];
    if (rows.empty()) runs.push_back(cell(kRun));
    rows.push_back(std::move(row));
    return std::nullopt;
  }

  // The runs follow each other. Each counts its time from its own begin.
  void add_runs() {
    Duration begin{};
    for (const std::string& run : runs) {
      auto& rows = by_run[run];
      std::ranges::stable_sort(
          rows, [](const LogRow& a, const LogRow& b) { return a.time->at < b.time->at; });
      const Duration length = rows.back().time->at;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i].time->at += begin;
        rows[i].begins = rows[i].starts_section = i == 0 && begin > Duration{};
        log.add(std::move(rows[i]));
      }
      begin = std::min(begin + length + std::chrono::seconds{1}, kLongest);
    }
  }
};

Result<model::Recording> read_perun(std::span<const SourceText> sources,
                                    const ImportOptions& options) {
  const SourceText& source = sources.front();
  const Cells header = csv_header(source.text);
  const auto places = places_of(header);
  if (!places) {
    return fail_at(source, 1, "no header of perun's CSV, such as 'hostname' and 'timestep'");
  }
  RowLog log(kTool, options);
  log.set_source(source);
  Reader reader{log, *places, {}, {}, {}, {}};
  std::size_t good = 0;
  for (Lines lines(source.text); lines.next();) {
    if (lines.number() == 1 || trim(lines.text()).empty()) continue;
    const auto cells = split_csv(lines.text());
    good += log.bad().take(source, lines, cells ? cells->back() : "", log.builder(), [&] {
      if (!cells) return std::optional<std::string>("its quotes do not end");
      return reader.take(*cells, header.size(), lines.number());
    });
  }
  if (auto right = log.bad().check(source, good); !right) return forward_error(right);
  if (reader.hosts.size() > 1) {
    return fail(Errc::kUnsupported,
                fmt::format("{}: it has the readings of {} machines, each by a clock of its own; "
                            "give the rows of one of them: {}",
                            source.path, reader.hosts.size(), show(*reader.hosts.begin())));
  }
  for (const auto& [unit, count] : reader.others) {
    log.builder().warn(fmt::format("{} in {} left out: power and energy are imported",
                                   counted(count, "row"), show(unit)));
  }
  reader.add_runs();
  return std::move(log).finish();
}

}  // namespace

extern const Importer kPerunImporter{
    {"perun", "what 'perun export FILE csv' writes"}, false, recognises_perun, read_perun};

}  // namespace jouleprof::importers
