#include "importers/row_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/median.h"
#include "base/text.h"
#include "importers/one_value.h"
#include "importers/source_text.h"
#include "model/device/sensor.h"

namespace jouleprof::importers {
namespace {

namespace gauge = model::gauge;

constexpr Duration kDefaultInterval = std::chrono::seconds{1};
constexpr Duration kMeanOf = std::chrono::seconds{1};
constexpr std::int64_t kLargestIndex = 65535;
constexpr double kMebibyte = 1024.0 * 1024.0;
constexpr double kMostJoules = 1e12;
constexpr std::int64_t kMostSeconds = 99'999'999'999;  // since 1970: more are of a finer unit

struct Unit {
  std::string_view name;
  char quantity;
  double scale;
};
// NVIDIA's tools write MB for 2^20 bytes.
constexpr std::array kUnits{Unit{"W", 'P', 1},
                            Unit{"mW", 'P', 1e-3},
                            Unit{"kW", 'P', 1e3},
                            Unit{"MW", 'P', 1e6},
                            Unit{"uW", 'P', 1e-6},
                            Unit{"J", 'E', 1},
                            Unit{"mJ", 'E', 1e-3},
                            Unit{"kJ", 'E', 1e3},
                            Unit{"uJ", 'E', 1e-6},
                            Unit{"Wh", 'E', 3600},
                            Unit{"kWh", 'E', 3.6e6},
                            Unit{"C", 'T', 1},
                            Unit{"%", 'R', 0.01},
                            Unit{"MHz", 'F', 1e6},
                            Unit{"GHz", 'F', 1e9},
                            Unit{"Hz", 'F', 1},
                            Unit{"kHz", 'F', 1e3},
                            Unit{"B", 'B', 1},
                            Unit{"KiB", 'B', 1024},
                            Unit{"MiB", 'B', kMebibyte},
                            Unit{"MB", 'B', kMebibyte},
                            Unit{"GiB", 'B', 1024 * kMebibyte},
                            Unit{"", 'N', 1}};

const Unit* find_unit(std::string_view name) {
  const auto found =
      std::ranges::find_if(kUnits, [name](const Unit& unit) { return unit.name == name; });
  return found == kUnits.end() ? nullptr : &*found;
}

// "61 W", "61W": the number, and the unit where there is one.
WithUnit split_value(std::string_view cell) {
  const WithUnit split = split_unit(cell);
  if (!split.unit.empty() || parse_number(split.word)) return split;
  const auto end = cell.find_last_of("0123456789.");
  if (end == cell.npos) return split;
  return {cell.substr(0, end + 1), trim(cell.substr(end + 1))};
}

// A distance that only two rows of one look have. The 95th percentile is between looks for up to
// 16 GPUs.
Duration longest_within_look(const std::vector<LogRow>& rows) {
  std::vector<Duration> distances;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    distances.push_back(std::max(rows[i].stamp - rows[i - 1].stamp, Duration::zero()));
  }
  if (distances.empty()) return Duration::zero();
  const auto place =
      distances.begin() + static_cast<std::ptrdiff_t>((distances.size() - 1) * 95 / 100);
  std::nth_element(distances.begin(), place, distances.end());
  return *place / 5;
}

// Stamps of whole seconds: rounds that share one are spread over it.
void spread_seconds(std::vector<Stamp>& stamps) {
  static constexpr Duration kResolution = std::chrono::seconds{1};
  const bool whole =
      std::ranges::all_of(stamps, [](const Stamp& s) { return s.at % kResolution == Duration{}; });
  if (!whole) return;
  for (std::size_t begin = 0, end = 0; begin < stamps.size(); begin = end) {
    for (end = begin + 1; end < stamps.size() && stamps[end].at == stamps[begin].at &&
                          !stamps[end].starts_segment;) {
      ++end;
    }
    const auto count = static_cast<std::int64_t>(end - begin);
    for (std::int64_t i = 1; i < count; ++i) {
      stamps[begin + static_cast<std::size_t>(i)].at += kResolution * i / count;
    }
  }
}

}  // namespace

bool is_absent(std::string_view cell) {
  cell = trim(cell);
  return cell.empty() || cell.starts_with('[') || cell == "-" || cell == "N/A" || cell == "ERR!" ||
         cell == "Not Supported" || cell == "Unknown Error" || lower_case(cell) == "nan";
}

void join_cells(Cells& cells, const Cells& header, std::string_view column) {
  const auto place = find_column(header, column);
  if (!place || cells.size() <= header.size()) return;
  const auto first = cells.begin() + static_cast<std::ptrdiff_t>(*place);
  const auto end = first + 1 + static_cast<std::ptrdiff_t>(cells.size() - header.size());
  *first = fmt::format("{}", fmt::join(first, end, " "));
  cells.erase(first + 1, end);
}

std::optional<double> unit_scale(std::string_view unit, std::string_view of) {
  const Unit* given = find_unit(unit);
  const Unit* meant = find_unit(of);
  if (!given || !meant || given->quantity != meant->quantity) return std::nullopt;
  return given->scale;
}

// What says which device a row is of.
struct RowLog::Keys {
  std::string index, device;
  std::array<std::string, 13> texts;  // of the other roles
  std::string& operator[](LogRole role) { return texts[static_cast<std::size_t>(role)]; }
  std::optional<Duration> date;
  bool is_other = false;  // of something that is no whole device
  bool is_invalid = false;
};

RowLog::RowLog(const LogTool& tool, const ImportOptions& options)
    : tool_(tool), options_(options), builder_(std::string(tool.format)) {}

tl::unexpected<Error> RowLog::error(std::string_view message) const {
  return fail_at(*source_, std::max<std::size_t>(line_, 1), message);
}

std::size_t RowLog::device(const std::string& key, LogDevice device) {
  const auto [place, is_new] = places_.try_emplace(key, devices_.size());
  if (is_new) devices_.push_back(std::move(device));
  return place->second;
}

std::size_t RowLog::sensor(LogSensor sensor) {
  const auto same = std::ranges::find_if(
      sensors_, [&](const LogSensor& s) { return s.kind == sensor.kind && s.name == sensor.name; });
  if (same == sensors_.end()) return sensors_.push_back(std::move(sensor)), sensors_.size() - 1;
  return static_cast<std::size_t>(same - sensors_.begin());
}

Result<void> RowLog::set_header(const Cells& names) {
  std::vector<LogColumn> columns;
  std::vector<std::ptrdiff_t> ranks;
  std::vector<std::string> left_out;
  std::vector<std::size_t> taken;  // sensors
  for (const std::string& name : names) {
    const auto [word, unit] = split_unit(name);
    const std::string lower = lower_case(word);
    columns.emplace_back();
    ranks.push_back(0);
    if (on_column) {
      if (auto column = on_column(name)) {
        columns.back() = std::move(*column);
      } else {
        left_out.push_back(name);
      }
      continue;
    }
    const auto known = std::ranges::find_if(
        tool_.fields, [&](const LogField& field) { return field.name == lower; });
    if (known == tool_.fields.end()) {
      if (!lower.empty()) left_out.emplace_back(word);
      continue;
    }
    LogColumn column{known->role, std::string(known->unit), {}, 0};
    ranks.back() = known - tool_.fields.begin();
    if (known->role == LogRole::kValue) {
      if (!unit.empty()) {
        if (!unit_scale(unit, known->unit)) {
          return error(fmt::format("{} is in a unit that is not known for it", show(name)));
        }
        column.unit = unit;
      }
      column.sensor = sensor({known->kind, std::string(known->sensor), known->is_mean});
      if (std::ranges::find(taken, column.sensor) != taken.end()) {
        left_out.emplace_back(word);  // another name of the same
        continue;
      }
      taken.push_back(column.sensor);
    }
    columns.back() = std::move(column);
  }
  for (std::string& name : left_out) {
    if (std::ranges::find(left_out_, name) == left_out_.end()) {
      left_out_.push_back(std::move(name));
    }
  }
  reading_order_.resize(columns.size());
  std::iota(reading_order_.begin(), reading_order_.end(), std::size_t{0});
  std::ranges::stable_sort(reading_order_, {}, [&](std::size_t i) { return ranks[i]; });
  columns_ = std::move(columns);
  header_ = names;
  bad_.begin_columns();
  return {};
}

Result<void> RowLog::take_units(const Cells& cells) {
  const bool has_all = cells.size() == columns_.size();
  if (!has_all && !tool_.has_few_units) return {};  // it says little
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    LogColumn& column = columns_[i];
    if (column.role != LogRole::kValue) continue;
    if (!has_all) {
      const bool is_gauge = sensors_[column.sensor].kind == model::SensorKind::kGauge;
      if (is_gauge || std::ranges::find(cells, column.unit) != cells.end()) continue;
      return error(fmt::format("{} is in {}, which is not among these units", show(header_[i]),
                               show(column.unit)));
    }
    if (column.unit == cells[i]) continue;
    if (!unit_scale(cells[i], column.unit)) {
      return error(
          fmt::format("{} is in {}, which is no unit of it", show(header_[i]), show(cells[i])));
    }
    column.unit = cells[i];
  }
  return {};
}

Result<void> RowLog::read(const SourceText& source, const std::string& device) {
  source_ = &source;
  file_device_ = device;
  ++files_;
  columns_.clear();
  const std::size_t before = rows_.size();
  const std::size_t bad_before = bad_.count();
  after_header_ = rows_.empty();
  for (Lines lines(source.text); lines.next();) {
    line_ = lines.number();
    if (trim(lines.text()).empty()) continue;
    const auto taken = take_line(lines);
    if (!taken) return forward_error(taken);
    if (!*taken) break;
  }
  if (!has_header()) {
    return fail(Errc::kCorrupt, fmt::format("{}: no header of {} in it", source.path, tool_.name));
  }
  if (bad_.count() > bad_before) {
    if (auto good = bad_.check(source, rows_.size() - before); !good) return good;
  }
  if (rows_.size() == before) {
    if (other_entities_.empty()) {
      return fail(Errc::kUnavailable,
                  fmt::format("{}: a header, and no row under it", source.path));
    }
    return fail(Errc::kUnavailable,
                fmt::format("{}: it has rows of {} only, and none of a whole GPU, whose power is "
                            "imported; log the GPU itself, too",
                            source.path, show(other_entities_.begin()->first)));
  }
  return {};
}

// False: the file ends here.
Result<bool> RowLog::take_line(const Lines& lines) {
  const std::string_view line = trim(lines.text());
  const bool ended = lines.ended();
  const bool may_be_header = tool_.is_header ? tool_.is_header(line) : !has_header();
  if (may_be_header) {
    if (!ended && has_header()) {
      builder_.warn(cut_off_warning(source_->path, line_));
      return false;
    }
    if (auto set = set_header(tool_.cells(line)); !set) return forward_error(set);
    after_header_ = true;
    return true;
  }
  Cells cells = tool_.cells(line);
  if (has_header() && tool_.is_units && tool_.is_units(cells)) {
    if (ended) {
      if (auto units = take_units(cells); !units) return forward_error(units);
    }
    return true;
  }
  if (ended && tool_.is_message && tool_.is_message(line) && cells.size() != columns_.size()) {
    ++messages_;
    return true;
  }
  if (!has_header()) {
    if (!on_missing_header) return true;  // before the log
    const auto names = on_missing_header(cells);
    if (!names) return error(names.error().message);
    if (auto set = set_header(*names); !set) return forward_error(set);
  }
  if (tool_.mend) tool_.mend(cells, header_);
  const std::string last = cells.empty() ? std::string() : cells.back();
  const std::size_t rows = rows_.size();
  if (!bad_.take(*source_, lines, last, builder_, [&] { return take_row(cells); })) {
    rows_.resize(rows);
  }
  return true;
}

// Why the row is left out; nothing where it counts.
std::optional<std::string> RowLog::take_row(const Cells& cells) {
  if (cells.size() != columns_.size()) {
    return fields_text(cells, columns_.size());
  }
  Keys keys;
  LogRow row;
  row.line = line_;
  std::map<std::string, LogRow> by_device;  // of a log with a column a device
  for (const std::size_t i : reading_order_) {
    const LogColumn& column = columns_[i];
    if (!column.role) continue;
    LogRow& to = column.device.empty() ? row : by_device[column.device];
    if (auto why = read_cell(column, cells[i], keys, to)) return why;
  }
  if (keys.is_other || keys.is_invalid) return std::nullopt;
  if (!row.time && !source_->line_times.empty()) row.time = source_->line_times[line_ - 1];
  row.begins = std::exchange(after_header_, false);
  row.starts_section = row.begins && tool_.headers_begin_sections && !rows_.empty();
  if (by_device.empty()) {
    if (!keys[LogRole::kSensor].empty()) {
      for (auto& [sensor_of, value] : row.values) {
        LogSensor own = sensors_[sensor_of];
        own.name = keys[LogRole::kSensor];
        if (own.kind != model::SensorKind::kGauge &&
            own.kind != model::SensorKind::kEnergyCounter) {
          own.kind = own.name.find("Samples") != std::string::npos
                         ? model::SensorKind::kPowerRing
                         : model::SensorKind::kPowerInstant;
        }
        sensor_of = sensor(std::move(own));
      }
    }
    row.device = device_of(keys);
    row.uuid = keys[keys[LogRole::kUuid].empty() ? LogRole::kBus : LogRole::kUuid];
    if (const std::string& name = keys[LogRole::kName]; !is_absent(name)) {
      const auto known = std::ranges::find(products_, name);
      row.product = static_cast<std::size_t>(known - products_.begin());
      if (known == products_.end()) products_.push_back(name);
    }
    rows_.push_back(std::move(row));
    return std::nullopt;
  }
  for (auto& [name, part] : by_device) {
    part.time = row.time;
    part.line = row.line;
    part.begins = row.begins;
    part.starts_section = row.starts_section;
    keys.device = name;
    part.device = device_of(keys);
    row.begins = false;
    rows_.push_back(std::move(part));
  }
  return std::nullopt;
}

std::optional<std::string> RowLog::read_cell(const LogColumn& column, const std::string& cell,
                                             Keys& keys, LogRow& row) {
  switch (*column.role) {
    case LogRole::kStamp:
      if (row.time || (cell.empty() && tool_.has_row_a_sensor)) break;  // one of several columns
      row.time = parse_log_time(cell, column.unit);
      if (!row.time) {
        return fmt::format(
            "{} is no time; write times as 2026-03-01 14:30:00, with a zone as +01:00 "
            "where it is known, or as seconds since 1970",
            show(cell));
      }
      if (column.unit.empty() && scaled_integer(cell, 0) > kMostSeconds) counts_by_size_ = true;
      break;
    case LogRole::kWorkBegin:
      if (const auto time = parse_log_time(cell, "s")) {
        const RealTime begin = utc_to_real(time->at);
        work_begin_ = std::min(work_begin_.value_or(begin), begin);
      }
      break;
    case LogRole::kWorkEnd:
      if (const auto time = parse_log_time(cell, "s")) {
        const RealTime end = utc_to_real(time->at);
        work_end_ = std::max(work_end_.value_or(end), end);
      }
      break;
    case LogRole::kDate:
      keys.date = parse_compact_date(cell);
      if (!keys.date) return fmt::format("{} is no date", show(cell));
      break;
    case LogRole::kTime: {
      const auto time = parse_time_of_day(cell);
      if (!time) return fmt::format("{} is no time of day", show(cell));
      row.time = keys.date ? LogTime{*keys.date + *time, LogTime::Kind::kCalendar}
                           : LogTime{*time, LogTime::Kind::kDay};
      break;
    }
    case LogRole::kIndex: {
      std::string_view number = cell;
      if (const auto words = split_blanks(cell); words.size() == 2) {
        if (words[0] != "GPU") {  // an instance of a GPU, a switch, a processor
          ++other_entities_[std::string(words[0])];
          keys.is_other = true;
          break;
        }
        number = words[1];
      }
      const auto index = parse_integer(number);
      if (!index || *index < 0 || *index > kLargestIndex) {
        return fmt::format("{} is no GPU index", show(cell));
      }
      keys.index = fmt::format("{}", *index);
      break;
    }
    case LogRole::kDevice:
      keys.device = cell;
      break;
    case LogRole::kProvenance:
      row.provenance = model::parse_provenance(cell).value_or(row.provenance);
      break;
    case LogRole::kGood:
      if (lower_case(cell) == "true" || cell == "1") break;
      keys.is_invalid = true;
      ++messages_;
      break;
    case LogRole::kValue: {
      std::optional<double> value;
      if (!is_absent(cell)) {
        const auto [word, own_unit] = split_value(cell);
        const auto number = parse_number(word);
        if (!number) return fmt::format("{} is no number", show(cell));
        const auto scale = unit_scale(own_unit.empty() ? column.unit : own_unit, column.unit);
        if (!scale) return fmt::format("{} is in a unit that is not known for it", show(cell));
        value = *number * *scale;
      }
      row.values.emplace_back(column.sensor, value);
      break;
    }
    default:
      keys[*column.role] = cell;
  }
  return std::nullopt;
}

std::size_t RowLog::device_of(Keys& keys) {
  const std::string& uuid = keys[LogRole::kUuid];
  const std::string& id = uuid.empty() ? keys[LogRole::kBus] : uuid;
  LogDevice fresh;
  std::string key;
  if (!keys.device.empty()) {
    fresh.device = parse_integer(keys.device) ? "gpu" + keys.device : keys.device;
    key = fresh.device + ' ' + keys[LogRole::kDomain];
    fresh.name = fresh.device;
    if (const auto kind = kind_of_device(fresh.device)) fresh.kind = *kind;
    if (const auto kind = model::parse_domain_kind(keys[LogRole::kDomain])) fresh.kind = *kind;
  } else if (!keys.index.empty() || !id.empty()) {
    key = keys.index.empty() ? id : keys.index;
    fresh.device = keys.index.empty() ? fmt::format("{}{}", tool_.device, places_.size())
                                      : fmt::format("{}{}", tool_.device, keys.index);
    fresh.name = "GPU " + key;
  } else {
    key = file_device_;
    fresh.device = key.empty() ? fmt::format("{}0", tool_.device) : key;
    fresh.name = key.empty() ? "GPU 0" : fmt::format("GPU of {}", source_->path);
  }
  has_keys_ = has_keys_ || !keys.device.empty() || !keys.index.empty() || !id.empty();
  fresh.uuid = uuid;
  const std::size_t found = device(key, std::move(fresh));
  if (!keys.index.empty() && !uuid.empty()) ++uuids_[found][uuid];
  return found;
}

// Rows of one index with several UUIDs are of several machines: the UUID names the device.
void RowLog::separate_uuids() {
  const bool any =
      std::ranges::any_of(uuids_, [](const auto& entry) { return entry.second.size() > 1; });
  if (!any) return;
  devices_.clear();
  places_.clear();
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::size_t number = places_.size();
    const std::string& uuid = rows_[i].uuid;
    rows_[i].device =
        device(uuid, {model::DomainKind::kGpu, fmt::format("gpu{}", number), "GPU " + uuid, uuid});
  }
  builder_.warn(
      fmt::format("one index has several UUIDs, as in a log of several machines: its {} "
                  "GPUs are numbered in the order of the rows",
                  devices_.size()));
}

Result<void> RowLog::name_by_look() {
  if (has_keys_) {
    if (uuids_.empty() && !devices_.empty() && devices_.front().name.starts_with("GPU GPU-")) {
      builder_.warn(
          fmt::format("the log has no column index: its {} GPU{} numbered in the order of the rows",
                      devices_.size(), devices_.size() == 1 ? " is" : "s are"));
    }
    return {};
  }
  if (!has_times_) {
    builder_.warn("the log does not say which GPU its rows are of: all are taken to be of gpu0");
    return {};
  }
  const Duration within = longest_within_look(rows_);
  std::map<std::size_t, std::size_t> looks_of_size;
  std::size_t in_look = 0;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const bool new_look = i == 0 || rows_[i].starts_section ||
                          rows_[i].stamp < rows_[i - 1].stamp ||
                          rows_[i].stamp - rows_[i - 1].stamp > within;
    if (new_look && i > 0) ++looks_of_size[in_look];
    in_look = new_look ? 1 : in_look + 1;
    places.push_back(in_look - 1);
  }
  // The last look may be cut off.
  const std::size_t most = looks_of_size.empty() ? in_look : looks_of_size.rbegin()->first;
  if (looks_of_size.size() > 1 || in_look > most) {
    return fail(Errc::kCorrupt,
                fmt::format("{}: the log does not say which GPU each row is of, and looks have "
                            "different numbers of rows; log with "
                            "--query-gpu=timestamp,index,power.draw",
                            source_->path));
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].device = device(places[i] == 0 ? "" : fmt::format("{}", places[i]),
                             {model::DomainKind::kGpu, fmt::format("gpu{}", places[i]),
                              fmt::format("GPU {}", places[i])});
  }
  builder_.warn(most == 1 ? "the log does not say which GPU it is of: it is called gpu0"
                          : fmt::format("the log does not say which GPU each row is of: {} rows "
                                        "come at a time, and are taken to be of gpu0 to gpu{}",
                                        most, most - 1));
  return {};
}

// Each device has the product's name that its rows have. One device is of one product.
Result<void> RowLog::name_products() {
  std::vector<std::size_t> of_device(devices_.size());
  for (const LogRow& row : rows_) {
    if (row.product == 0) continue;
    const std::size_t before = std::exchange(of_device[row.device], row.product);
    devices_[row.device].name = products_[row.product];
    if (before == 0 || before == row.product) continue;
    return fail(Errc::kCorrupt,
                fmt::format("{}: line {} has the power of a {}, where {} was a {} before: its rows "
                            "are of several GPUs; import each one's rows from a file of their "
                            "own, or log with --query-gpu=timestamp,index,uuid,name,power.draw",
                            source_->path, row.line, show(products_[row.product]),
                            devices_[row.device].device, show(products_[before])));
  }
  return {};
}

Result<void> RowLog::make_stamps() {
  std::map<LogTime::Kind, std::size_t> kinds;
  for (const LogRow& row : rows_) {
    if (row.time) ++kinds[row.time->kind];
  }
  has_times_ = !kinds.empty();
  if (!has_times_) {
    const Duration interval = options_.interval.value_or(kDefaultInterval);
    if (interval > Duration::max() / static_cast<std::int64_t>(rows_.size())) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("{} rows at intervals of {:.0f} s are centuries; give the right "
                              "interval",
                              rows_.size(), seconds(interval)));
    }
    std::vector<std::int64_t> looks(devices_.size());
    for (LogRow& row : rows_) row.stamp = interval * looks[row.device]++;
    builder_.warn(fmt::format(
        "the log has no time stamps: its rows are taken to be {} s apart{}", seconds(interval),
        options_.interval
            ? ""
            : fmt::format("; give --interval if {} ran with another interval", tool_.name)));
    return {};
  }
  times_ = std::ranges::max_element(kinds, [](const auto& a, const auto& b) {
             return a.second < b.second;
           })->first;
  constexpr Duration kDay = std::chrono::hours{24};
  const Duration turn = times_ == LogTime::Kind::kDay ? kDay : 366 * kDay;
  const bool turns = times_ == LogTime::Kind::kDay || times_ == LogTime::Kind::kYearless;
  std::optional<Duration> last;
  Duration past{};
  std::vector<LogRow> kept;
  for (LogRow& row : rows_) {
    if (!row.time || row.time->kind != times_) {
      bad_.add(row.line, "its time is of another kind than the other rows'");
      continue;
    }
    // Without a date a time that falls by more than half a day has passed midnight.
    if (turns && last && row.time->at + turn / 2 < *last) past += turn;
    if (past > 3650 * kDay) {
      return fail(Errc::kCorrupt, fmt::format("{}: more than ten years of time stamps without "
                                              "dates",
                                              source_->path));
    }
    last = row.time->at;
    row.stamp = past + row.time->at;
    kept.push_back(std::move(row));
  }
  rows_ = std::move(kept);
  read_local_times();
  turn_newest_first();
  leave_out_far_times();
  put_late_rows_in_place();
  leave_out_repeated_rows();
  if (times_ == LogTime::Kind::kElapsed) {
    builder_.warn("the log's times do not count from 1970: when it was made is unknown");
    if (!note_of_elapsed.empty()) builder_.warn(note_of_elapsed);
  } else if (counts_by_size_ && !note_of_size.empty()) {
    builder_.warn(note_of_size);
  } else if (turns) {
    builder_.warn(fmt::format("the log's time stamps have no {}: when it was made is unknown",
                              times_ == LogTime::Kind::kDay ? "date" : "year"));
  }
  if (options_.interval) builder_.warn("--interval is not used: the log has its own time stamps");
  return {};
}

// An interval that the log does not state is refuted by an energy counter that rises by another
// energy than the power makes in it. Where it rises by a thousandth or a thousand times of that,
// its unit may be another, which the builder checks.
Result<void> RowLog::check_interval() const {
  constexpr double kApart = 1.5, kMostApart = 600;
  constexpr std::size_t kFewest = 10;  // rows
  if (has_times_ || options_.interval) return {};
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    std::map<std::size_t, double> last, rises;  // of counters
    std::vector<double> watts;
    std::size_t count = 0;
    for (const LogRow& row : rows_) {
      if (row.device != d) continue;
      ++count;
      if (const auto value = power(row)) watts.push_back(*value);
      for (const auto& [of, value] : row.values) {
        if (!value || sensors_[of].kind != model::SensorKind::kEnergyCounter) continue;
        const auto [before, is_first] = last.try_emplace(of, *value);
        if (!is_first) rises[of] += std::max(*value - std::exchange(before->second, *value), 0.0);
      }
    }
    const double joules = mean(watts) * static_cast<double>(count - 1) * seconds(kDefaultInterval);
    for (const auto& [of, rise] : rises) {
      const double times = rise / joules;
      if (count < kFewest || !(joules > 0) || !(rise > 0) || times > kMostApart ||
          times < 1 / kMostApart || (times < kApart && times > 1 / kApart)) {
        continue;
      }
      return fail(
          Errc::kCorrupt,
          fmt::format("{}: the log has no time stamps, and rows of {} are not {:g} s apart: "
                      "{} rises by {:.4g} J, where its power makes {:.4g} J then; give the "
                      "distance of rows, about --interval {:.3g}s",
                      source_->path, devices_[d].device, seconds(kDefaultInterval),
                      sensors_[of].name, rise, joules, times * seconds(kDefaultInterval)));
    }
  }
  return {};
}

// Times of the local clock become instants; each device's rows have an order of their own.
void RowLog::read_local_times() {
  const bool is_local = times_ == LogTime::Kind::kCalendar && !tool_.times_are_utc;
  const bool has_date = times_ != LogTime::Kind::kDay && times_ != LogTime::Kind::kYearless;
  if (!is_local && has_date) return;
  std::vector<std::vector<Stamp>> series(devices_.size());
  for (const LogRow& row : rows_) series[row.device].push_back({row.stamp, row.begins});
  builder_.read_local_times(series, !has_date);
  std::vector<std::size_t> next(devices_.size());
  for (LogRow& row : rows_) row.stamp = series[row.device][next[row.device]++].at;
  if (is_local) times_ = LogTime::Kind::kUnix;
}

// Tables that are downloaded from dashboards often begin with the newest row.
void RowLog::turn_newest_first() {
  std::size_t backward = 0;
  for (std::size_t i = 1; i < rows_.size(); ++i) {
    if (rows_[i].stamp > rows_[i - 1].stamp || rows_[i].begins || rows_[i].starts_section) return;
    backward += rows_[i].stamp < rows_[i - 1].stamp;
  }
  if (backward < 2) return;
  std::swap(rows_.front().begins, rows_.back().begins);
  std::swap(rows_.front().starts_section, rows_.back().starts_section);
  std::ranges::reverse(rows_);
  builder_.warn("the log begins with its newest row; it was read from its end");
}

// A row that was written one place too late fills the hole before it. A clock that was set back
// leaves no hole.
void RowLog::put_late_rows_in_place() {
  std::vector<std::vector<std::size_t>> places(devices_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) places[rows_[i].device].push_back(i);
  std::size_t late = 0;
  for (const auto& own : places) {
    std::vector<Stamp> stamps;
    for (const std::size_t i : own) stamps.push_back({rows_[i].stamp, rows_[i].begins});
    const Duration least = usual_distance(stamps) * 8 / 10;
    std::vector<std::size_t> found;
    for (std::size_t k = 1; k < own.size(); ++k) {
      const Duration at = stamps[k].at, before = stamps[k - 1].at;
      const bool fills = before - at >= least && (k < 2 || at - stamps[k - 2].at >= least);
      const bool goes_on = k + 1 == own.size() || stamps[k + 1].at > before;
      if (fills && goes_on && least > Duration{} && !stamps[k].starts_segment &&
          !stamps[k - 1].starts_segment) {
        found.push_back(k);
      }
    }
    if (10 * found.size() > own.size()) continue;
    for (const std::size_t k : found) std::swap(rows_[own[k]], rows_[own[k - 1]]);
    late += found.size();
  }
  if (late > 0) {
    builder_.warn(fmt::format("{} out of the order of {} times put in place", counted(late, "row"),
                              late == 1 ? "its" : "their"));
  }
}

// A row that stands there twice, in a log of one row a second: it would be spread over the second.
void RowLog::leave_out_repeated_rows() {
  static constexpr Duration kResolution = std::chrono::seconds{1};
  std::vector<std::size_t> last(devices_.size(), rows_.size());
  std::vector<bool> is_again(rows_.size());
  std::size_t same_stamp = 0, again = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::size_t before = std::exchange(last[rows_[i].device], i);
    if (rows_[i].stamp % kResolution != Duration{}) return;
    if (before == rows_.size() || rows_[before].stamp != rows_[i].stamp) continue;
    ++same_stamp;
    is_again[i] = rows_[before].values == rows_[i].values;
    again += is_again[i] ? 1 : 0;
  }
  if (again == 0 || again < same_stamp || 10 * again > rows_.size()) return;
  std::size_t i = 0;
  std::erase_if(rows_, [&](const LogRow&) { return is_again[i++]; });
  builder_.warn(fmt::format("{} left out that stand{} in the log twice", counted(again, "row"),
                            again == 1 ? "s" : ""));
}

// A single row far from both neighbours, which are near each other.
void RowLog::leave_out_far_times() {
  constexpr Duration kFar = std::chrono::hours{1};
  std::vector<LogRow> kept;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (!kept.empty() && i + 1 < rows_.size()) {
      const Duration before = kept.back().stamp, after = rows_[i + 1].stamp;
      const Duration near = std::min(std::chrono::abs(rows_[i].stamp - before),
                                     std::chrono::abs(rows_[i].stamp - after));
      if (after >= before && near > kFar && (after - before) * 10 < near && !rows_[i].begins &&
          !rows_[i + 1].begins) {
        bad_.add(rows_[i].line, "its time is far from those of the rows around it");
        continue;
      }
    }
    kept.push_back(std::move(rows_[i]));
  }
  rows_ = std::move(kept);
}

// A logger writes a row of each device, and then begins again.
std::optional<std::string> RowLog::adjacent_device() const {
  if (has_times_ || devices_.size() < 2 || rows_.size() < 8) return std::nullopt;
  // One that is left alone, because the others were lost, has no other's rows between its own.
  std::size_t count = rows_.size();
  while (count > 1 && rows_[count - 1].device == rows_[count - 2].device) --count;
  std::size_t adjacent = 0;
  for (std::size_t i = 1; i < count; ++i) {
    adjacent += rows_[i].device == rows_[i - 1].device && !rows_[i].begins ? 1 : 0;
  }
  if (adjacent * 5 < count && count > devices_.size()) return std::nullopt;
  return fmt::format(
      "{} of {} rows are of the device of the row before, as several loggers write "
      "them into one file; import each one's rows from a file of their own",
      adjacent + (rows_.size() - count), rows_.size());
}

// Of a log without times: whether all of its rows stand there several times, one after the other.
void RowLog::check_repeated_rows() {
  constexpr std::size_t kFewest = 10,
                        kFewestDifferent = 4;  // of a load that recurs there are fewer
  const std::size_t count = rows_.size();
  if (has_times_ || count < 2) return;
  const std::size_t period = repeated_whole(rows_, [](const LogRow& a, const LogRow& b) {
    return a.device == b.device && a.values == b.values;
  });
  if (period == count) return;
  bool counts_up = false;
  std::set<std::vector<std::pair<std::size_t, std::optional<double>>>> different;
  std::map<std::pair<std::size_t, std::size_t>, double> first;
  for (std::size_t i = 0; i < period; ++i) {
    different.insert(rows_[i].values);
    for (const auto& [of, value] : rows_[i].values) {
      if (!value || sensors_[of].kind != model::SensorKind::kEnergyCounter) continue;
      const auto at = first.try_emplace({rows_[i].device, of}, *value).first;
      counts_up = counts_up || *value > at->second;
    }
  }
  const std::size_t line = rows_[period].line;
  if (counts_up) {
    rows_.resize(period);
    builder_.warn(
        fmt::format("{} left out that stand in the log twice", counted(count - period, "row")));
  } else if (period >= kFewest && different.size() >= kFewestDifferent) {
    builder_.warn(fmt::format(
        "the rows from line {} on are those before it once more: if the log stands in the file "
        "{} times, its energy is counted {} times; leave the copies out",
        line, count / period, count / period));
  }
}

// Whether times go back from device to device only, as where several loggers write into one file.
bool RowLog::devices_go_back() const {
  if (!has_times_ || std::ranges::is_sorted(rows_, {}, &LogRow::stamp)) return false;
  std::vector<std::optional<Duration>> last(devices_.size());
  return std::ranges::all_of(rows_, [&](const LogRow& row) {
    auto& before = last[row.device];
    const bool goes_on = !before || row.stamp >= *before;
    before = row.stamp;
    return goes_on;
  });
}

Result<void> RowLog::check_one_value() {
  check_repeated_rows();
  if (const auto why = adjacent_device()) {
    return fail(Errc::kCorrupt, fmt::format("{}: {}", source_->path, *why));
  }
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const bool by_sensor = tool_.has_row_a_sensor && !rows_[i].values.empty();
    groups[{rows_[i].device, by_sensor ? rows_[i].values.front().first : 0}].push_back(i);
  }
  std::vector<std::size_t> kept;
  bool sorted = false;
  for (const auto& [group, places] : groups) {
    DeviceRows own;
    own.device = devices_[group.first].device;
    own.one_row_a_second = tool_.one_row_a_second;
    for (const std::size_t i : places) {
      own.lines.push_back(rows_[i].line);
      own.begins.push_back(rows_[i].begins);
      if (has_times_) own.stamps.push_back(rows_[i].stamp);
    }
    for (const bool powers : {true, false}) {
      for (std::size_t s = 0; s < sensors_.size(); ++s) {
        const auto kind = sensors_[s].kind;
        const bool counts = kind == model::SensorKind::kEnergyCounter;
        const bool is_gauge = kind == model::SensorKind::kGauge;
        if ((!counts && !is_gauge) != powers) continue;
        DeviceRows::Column column{sensors_[s].name, false, counts, {}};
        column.slow =
            is_gauge &&
            (column.name == gauge::kTemperature || column.name == gauge::kMemoryTemperature ||
             column.name == gauge::kMemoryUsed || column.name == gauge::kPowerLimit);
        bool any = false;
        for (const std::size_t i : places) {
          double value = std::numeric_limits<double>::quiet_NaN();
          for (const auto& [of, v] : rows_[i].values) {
            if (of == s && v) value = *v;
          }
          any = any || !std::isnan(value);
          column.values.push_back(value);
        }
        if (any) own.columns.push_back(std::move(column));
      }
    }
    const auto order = rows_of_one_value(own, source_->path, builder_);
    if (!order) return forward_error(order);
    sorted = sorted || !std::ranges::is_sorted(*order);
    for (const std::size_t i : *order) kept.push_back(places[i]);
  }
  const bool is_disordered = !sorted && devices_go_back();
  std::ranges::sort(kept);
  const std::size_t repeated = rows_.size() - kept.size();
  if (repeated == 0 && !sorted && !is_disordered) return {};
  if (is_disordered) {
    builder_.warn("rows of its devices are not in the order of their times: they were sorted");
  }
  std::vector<LogRow> rows;
  for (const std::size_t i : kept) rows.push_back(std::move(rows_[i]));
  rows_ = std::move(rows);
  std::ranges::stable_sort(rows_, {}, &LogRow::stamp);
  for (LogRow& row : rows_) row.starts_section = false;
  if (repeated > 0) {
    builder_.warn(fmt::format("{} left out that stand in the log twice", counted(repeated, "row")));
  }
  return {};
}

std::optional<double> RowLog::value(const LogRow& row, std::string_view sensor) const {
  for (const auto& [of, value] : row.values) {
    if (sensors_[of].name == sensor) return value;
  }
  return std::nullopt;
}

std::optional<double> RowLog::power(const LogRow& row) const {
  for (const auto& [of, value] : row.values) {
    const auto kind = sensors_[of].kind;
    if (kind != model::SensorKind::kGauge && kind != model::SensorKind::kEnergyCounter) {
      return value;
    }
  }
  return std::nullopt;
}

// A round ends where a device comes again. Pauses are looked for between rounds, so that the small
// distances within one do not count. A sensor is made when its first value appears; later missing
// powers are failures, missing gauges and counters nothing.
Layout RowLog::add_rounds() {
  std::vector<std::size_t> rounds;
  std::vector<bool> seen(devices_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const bool another_sensor = i > 0 && rows_[i].device == rows_[i - 1].device &&
                                rows_[i].stamp == rows_[i - 1].stamp && !rows_[i].values.empty() &&
                                !rows_[i - 1].values.empty() &&
                                rows_[i].values[0].first != rows_[i - 1].values[0].first;
    // Rows of one time are of one round, also where a device's log begins late.
    bool ends_round = seen[rows_[i].device] && !another_sensor;
    if (i > 0 && rows_[i].stamp > rows_[i - 1].stamp) {
      for (std::size_t k = i; k < rows_.size() && rows_[k].stamp == rows_[i].stamp; ++k) {
        ends_round = ends_round || seen[rows_[k].device];
      }
    }
    if (rounds.empty() || rows_[i].starts_section || ends_round) {
      rounds.push_back(i);
      seen.assign(seen.size(), false);
    }
    seen[rows_[i].device] = true;
  }
  std::vector<Stamp> stamps;
  for (const std::size_t i : rounds) stamps.push_back({rows_[i].stamp, rows_[i].starts_section});
  if (has_times_) spread_seconds(stamps);
  const bool only_counters = std::ranges::all_of(sensors_, [](const LogSensor& sensor) {
    return sensor.kind == model::SensorKind::kEnergyCounter;
  });
  Layout layout = lay_out(stamps, tool_.is_polled_mean ? kMeanOf : Duration{1},
                          !(tool_.reads_counters_seldom && only_counters));
  if (!has_times_) layout.cut = std::nullopt;  // pauses of unknown length

  std::vector<model::DomainId> domains;
  for (const LogDevice& device : devices_) {
    domains.push_back(builder_.add_domain(device.kind, device.device, device.name));
    builder_.domain(domains.back()).uuid = device.uuid;
  }
  std::map<std::pair<std::size_t, std::size_t>, model::SensorId> made;  // of device and sensor
  std::vector<bool> has_power(devices_.size());
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    const bool is_last = r + 1 == rounds.size();
    const std::size_t end = is_last ? rows_.size() : rounds[r + 1];
    const Duration room = is_last ? Duration::max() : layout.times[r + 1] - layout.times[r];
    HostTime at = layout.times[r];
    for (std::size_t i = rounds[r]; i < end; ++i) {
      const LogRow& row = rows_[i];
      // A round's rows are read one after the other; the next round's come later.
      const Duration offset = row.stamp - stamps[r].at;
      if (offset > Duration::zero() && offset < room) at = std::max(at, layout.times[r] + offset);
      last_at_ = at;
      for (const auto& [of, value] : row.values) {
        const LogSensor& sensor = sensors_[of];
        auto found = made.find({row.device, of});
        if (found == made.end()) {
          if (!value) continue;
          const auto id = builder_.add_sensor(domains[row.device], sensor.kind, sensor.name);
          if (sensor.is_mean) builder_.recording().sensors.back().traits.window = kMeanOf;
          found = made.emplace(std::pair(row.device, of), id).first;
        }
        auto& own = builder_.recording().sensors[static_cast<std::size_t>(found->second)];
        own.provenance = combine(own.provenance, row.provenance);
        if (sensor.kind == model::SensorKind::kGauge) {
          if (value) builder_.add_gauge(found->second, at, *value);
          continue;
        }
        has_power[row.device] = true;
        if (sensor.kind != model::SensorKind::kEnergyCounter) {
          builder_.add_power(found->second, at, value);
        } else if (value && *value >= 0 && *value < kMostJoules) {
          builder_.recording().readings.counters.push_back(
              {found->second, at, at, Energy::joules(*value)});
        }
      }
    }
  }
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (!has_power[d]) {
      builder_.domain(domains[d]).unavailable_reason = "the log has no power of this device";
    }
  }
  if (on_rounds) on_rounds(rounds, layout);
  return layout;
}

void RowLog::warn_of_rows() {
  for (std::string& text : bad_.warnings()) builder_.warn(std::move(text));
  if (!left_out_.empty()) {
    builder_.warn(fmt::format("{} left out: {}", counted(left_out_.size(), "column"),
                              show(fmt::format("{}", fmt::join(left_out_, ", ")), 200)));
  }
  if (messages_ > 0) {
    builder_.warn(fmt::format("{} left out that {} no row of {}, or that it marks as bad",
                              counted(messages_, "line"), messages_ == 1 ? "is" : "are",
                              tool_.name));
  }
  for (const auto& [entity, rows] : other_entities_) {
    builder_.warn(fmt::format("{} of {} left out: the power of whole GPUs is imported",
                              counted(rows, "row"), show(entity)));
  }
}

Result<model::Recording> RowLog::finish() && {
  if (rows_.empty()) {
    return fail(Errc::kUnavailable, fmt::format("{}: no row of a device in it", source_->path));
  }
  std::vector<std::string> powers;
  for (const LogSensor& s : sensors_) {
    if (s.kind != model::SensorKind::kGauge) powers.push_back(s.name);
  }
  if (powers.empty()) {
    return fail(Errc::kUnavailable, fmt::format("{}: it has no power{}{}", source_->path,
                                                tool_.advice.empty() ? "" : "; ", tool_.advice));
  }
  const bool has_value = std::ranges::any_of(rows_, [&](const LogRow& row) {
    return std::ranges::any_of(powers,
                               [&](const auto& name) { return value(row, name).has_value(); });
  });
  if (!has_value) {
    return fail(Errc::kUnavailable,
                fmt::format("{}: {} has no value in any of {}: the device or its driver does not "
                            "give it; log another column of power or energy",
                            source_->path, fmt::join(powers, ", "), counted(rows_.size(), "row")));
  }
  separate_uuids();
  if (auto stamped = make_stamps(); !stamped) return forward_error(stamped);
  if (files_ > 1) {
    std::ranges::stable_sort(rows_, {}, &LogRow::stamp);
  }
  if (tool_.numbers_by_look) {
    if (auto named = name_by_look(); !named) return forward_error(named);
  }
  if (auto named = name_products(); !named) return forward_error(named);
  if (auto one = check_one_value(); !one) return forward_error(one);
  if (auto right = check_interval(); !right) return forward_error(right);
  warn_of_rows();
  const Layout layout = add_rounds();
  RealTime (*to_real)(Duration) = nullptr;
  if (has_times_ && (times_ == LogTime::Kind::kUnix || times_ == LogTime::Kind::kCalendar)) {
    to_real = utc_to_real;
  }
  builder_.set_clock(layout, to_real);
  auto made = std::move(builder_).finish(source_->path, layout.times.front(),
                                         files_ > 1 ? last_at_ : layout.times.back());
  if (made && (files_ > 1 || tool_.has_row_a_sensor)) trim_ends(*made);
  if (made && work_begin_ && work_end_ && made->run.work_begin && !made->clock_points.empty()) {
    auto& run = made->run;
    const ClockMap clocks(made->clock_points);
    const HostTime begin = std::max(*run.work_begin, clocks.to_host(*work_begin_));
    const HostTime end = std::min(*run.work_end, clocks.to_host(*work_end_));
    if (begin < end) run.work_begin = begin, run.work_end = end;
  }
  return made;
}

}  // namespace jouleprof::importers
