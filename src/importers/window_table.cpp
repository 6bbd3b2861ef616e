#include "importers/window_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "importers/source_text.h"

namespace jouleprof::importers {
namespace {

constexpr double kMostJoules = 1e12;
constexpr double kMostSeconds = 3.2e8;  // ten years

std::string with_number(std::string_view name, int number) {
  std::string out(name);
  if (const auto at = out.find('#'); at != out.npos) out.replace(at, 1, fmt::format("{}", number));
  return out;
}

}  // namespace

model::DomainId WindowTable::domain(const std::string& device, const std::string& product) {
  const auto [place, is_new] = domains_.try_emplace(device);
  if (is_new) {
    place->second = builder_.add_domain(kind_of_device(device).value_or(model::DomainKind::kGpu),
                                        device, product);
    builder_.domain(place->second).unavailable_reason = tool_.reason;
  }
  return place->second;
}

bool WindowTable::has_column(std::string_view name) const {
  return std::ranges::any_of(columns_, [name](const Column& c) { return c.name == name; });
}

Result<void> WindowTable::take_header(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    Column column{nullptr, name, {}, {}};
    for (const TableField& field : tool_.fields) {
      const auto mark = field.name.find('#');
      std::optional<int> number;
      if (mark != field.name.npos) {
        number = numbered_column(name, field.name.substr(0, mark), field.name.substr(mark + 1));
        if (!number) continue;
      } else if (field.name != name) {
        continue;
      }
      column.field = &field;
      if (field.role == TableRole::kEnergy) {
        column.device = with_number(field.device, number.value_or(0));
        column.product = with_number(field.product, number.value_or(0));
      }
    }
    // Both would count.
    const bool is_second = column.field && std::ranges::any_of(columns_, [&](const Column& c) {
                             return c.field == column.field && c.device == column.device;
                           });
    if (is_second) {
      return fail_at(
          source_, 1,
          fmt::format("the header has the column {} twice; leave one of them out", show(name)));
    }
    const bool is_left_out = !column.field && !tool_.keeps_other_columns;
    if (is_left_out && lower_case(name).find("energy") != name.npos) {
      builder_.warn(fmt::format("column {} left out: its energy is in no total", show(name)));
    }
    columns_.push_back(std::move(column));
  }
  for (const TableField& field : tool_.fields) {
    if (!field.is_needed) continue;
    const bool found =
        std::ranges::any_of(columns_, [&](const Column& c) { return c.field == &field; });
    if (!found) {
      return fail_at(source_, 1,
                     fmt::format("the header has no column '{}'", with_number(field.name, 0)));
    }
  }
  return {};
}

// Tables that were joined, or whose tool was renewed between two runs: other columns may follow.
bool WindowTable::is_header_again(std::string_view line) const {
  if (line.find(columns_.front().name) > 1) return false;  // a quote before it
  const auto names = csv_cells(line);
  return names.size() > 1 && columns_.size() > 1 && names[0] == columns_[0].name &&
         names[1] == columns_[1].name;
}

Result<void> WindowTable::read() {
  constexpr std::size_t kFewest = 4;  // rows of which no two are equal: fewer may recur
  bool has_keys = false;
  std::vector<std::string_view> texts;
  for (Lines lines(source_.text); lines.next();) {
    if (trim(lines.text()).empty()) continue;
    if (columns_.empty() || is_header_again(lines.text())) {
      columns_.clear();
      if (auto header = take_header(csv_cells(lines.text())); !header) return header;
      has_keys = std::ranges::any_of(tool_.keys, [&](auto key) { return has_column(key); });
      continue;
    }
    const auto cells =
        tool_.cells ? tool_.cells(lines.text(), columns_.size()) : csv_cells(lines.text());
    const std::string end = cells.empty() ? std::string() : cells.back();
    TableWindow row;
    row.line = lines.number();
    if (!bad_.take(source_, lines, end, builder_, [&] { return take_row(cells, row); })) continue;
    const bool is_known = !lines_.emplace(lines.text()).second;
    if ((row.start || row.end || has_keys) && is_known) {
      ++repeated_;
    } else {
      windows_.push_back(std::move(row));
      texts.push_back(lines.text());
    }
  }
  if (const auto once = repeated_whole(texts); once < texts.size() && lines_.size() >= kFewest) {
    repeated_ += texts.size() - once;
    windows_.resize(once);
  }
  if (auto good = bad_.check(source_, windows_.size()); !good) return good;
  if (!windows_.empty()) return {};
  return fail(Errc::kUnavailable,
              fmt::format("{}: a header, and no {} under it", source_.path, tool_.row));
}

std::optional<std::string> WindowTable::take_row(const std::vector<std::string>& cells,
                                                 TableWindow& row) {
  if (cells.size() != columns_.size()) {
    return fields_text(cells, columns_.size());
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (auto why = read_cell(columns_[i], cells[i], row)) return why;
  }
  if (row.duration) row.window.duration = *row.duration;
  return tool_.check ? tool_.check(*this, row) : std::nullopt;
}

std::optional<std::string> WindowTable::read_cell(const Column& column, const std::string& cell,
                                                  TableWindow& row) {
  if (!column.field) {
    if (tool_.keeps_other_columns) row.window.labels.push_back({column.name, cell});
    return std::nullopt;
  }
  const TableField& field = *column.field;
  switch (field.role) {
    case TableRole::kName:
      row.window.name = cell;
      break;
    case TableRole::kText:
      row.texts[column.name] = cell;
      break;
    case TableRole::kLabel:
      if (cell.empty()) break;
      row.window.labels.push_back(
          {std::string(field.label.empty() ? column.name : field.label), cell});
      break;
    case TableRole::kNumber:
      if (const auto number = parse_number(cell)) {
        row.numbers[column.name] = *number;
      } else if (field.is_needed) {
        return fmt::format("{} is {}", column.name, show(cell));
      }
      break;
    case TableRole::kStart:
    case TableRole::kEnd: {
      if (cell.empty()) break;
      const auto time = parse_log_time(cell, field.unit);
      if (!time) return fmt::format("{} is {}, no time", column.name, show(cell));
      (field.role == TableRole::kStart ? row.start : row.end) = time;
      break;
    }
    case TableRole::kDuration: {
      const auto number = parse_number(cell);
      const auto exact = field.scale == 1 ? parse_seconds(cell) : std::nullopt;
      if (!number || *number < 0 || *number * field.scale > kMostSeconds) {
        return fmt::format("{} is {}, no duration", column.name, show(cell));
      }
      row.duration = exact ? *exact : duration_of(*number * field.scale);
      break;
    }
    case TableRole::kEnergy: {
      if (cell.empty()) break;
      const auto number = parse_number(cell);
      if (!number || *number < 0 || *number * field.scale > kMostJoules) {
        return fmt::format("{} is {}, no energy", column.name, show(cell));
      }
      if (*number == 0) {  // too short for the counter, or no such device
        ++zeros_[column.name];
        break;
      }
      row.window.energies.push_back(
          {domain(column.device, column.product), Energy::joules(*number * field.scale)});
      break;
    }
  }
  return std::nullopt;
}

Result<model::Recording> WindowTable::import() && {
  if (auto done = read(); !done) return forward_error(done);
  if (tool_.times_are_local) read_local_times();
  if (auto done = tool_.complete ? tool_.complete(*this) : Result<void>(); !done) {
    return forward_error(done);
  }
  for (std::string& text : bad_.warnings()) builder_.warn(std::move(text));
  if (repeated_ > 0) {
    builder_.warn(fmt::format("{} left out that stand{} in the file twice",
                              counted(repeated_, "row"), repeated_ == 1 ? "s" : ""));
  }
  for (const auto& [column, count] : zeros_) {
    builder_.warn(
        fmt::format("{} of {} that {} exactly 0 left out: tools write 0 for what "
                    "they did not measure, too, and for windows shorter than an update "
                    "of the sensor",
                    counted(count, "value"), column, count == 1 ? "is" : "are"));
  }
  lay_out();
  return std::move(builder_).finish_windows(source_.path);
}

void WindowTable::read_local_times() {
  std::vector<LogTime*> times;
  std::vector<Stamp> stamps;
  for (TableWindow& row : windows_) {
    auto& time = row.end ? row.end : row.start;
    if (!time || time->kind != LogTime::Kind::kCalendar) continue;
    times.push_back(&*time);
    stamps.push_back({time->at, false});
  }
  if (times.empty()) return;
  builder_.read_local_times({&stamps, 1});
  for (std::size_t i = 0; i < times.size(); ++i) {
    *times[i] = LogTime{stamps[i].at, LogTime::Kind::kUnix};
  }
}

// Puts the windows on a time line where they have times.
void WindowTable::lay_out() {
  std::optional<Duration> first;
  std::optional<LogTime::Kind> kind;
  std::size_t of_other_kind = 0;
  for (TableWindow& row : windows_) {
    if (!row.start && row.end) {
      row.start = LogTime{row.end->at - row.window.duration, row.end->kind};
    }
    if (!row.start) continue;
    if (!kind) kind = row.start->kind;
    if (row.start->kind != *kind) {
      row.start.reset();
      ++of_other_kind;
      continue;
    }
    first = std::min(first.value_or(row.start->at), row.start->at);
  }
  if (of_other_kind > 0) {
    builder_.warn(fmt::format("the time of {} left out: it is of another kind than the first one's",
                              counted(of_other_kind, "window")));
  }
  model::Recording& recording = builder_.recording();
  if (first) {
    recording.run.work_begin = HostTime{};
    recording.run.work_end = HostTime{};
    if (*kind == LogTime::Kind::kUnix) {
      recording.clock_points.push_back({HostTime{}, RealTime{*first}, {}});
    } else if (*kind == LogTime::Kind::kCalendar && tool_.calendar) {
      recording.clock_points.push_back({HostTime{}, tool_.calendar(*first), {}});
    } else {
      builder_.warn("the times do not count from 1970: when the file was made is unknown");
    }
  }
  for (TableWindow& row : windows_) {
    if (row.start) {
      row.window.begin = HostTime{row.start->at - *first};
      recording.run.work_end =
          std::max(*recording.run.work_end, *row.window.begin + row.window.duration);
    }
    recording.imported_windows.push_back(std::move(row.window));
  }
}

}  // namespace jouleprof::importers
