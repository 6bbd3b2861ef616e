// What importers read of a file: its text as UTF-8, its lines with their numbers, and dates and
// times.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/domain.h"

namespace jouleprof::importers {

// --- Dates and times of other tools: the one reader for logs, tables and wall meters ---
//
// A calendar time is the nanoseconds since 1970-01-01 00:00 that a clock without time zone would
// show. Years 1970 to 2199.

// The end of 2199, since 1970: later times are mistakes.
inline constexpr Duration kLastUnixTime = std::chrono::seconds{7'258'118'400};

// A time as a file has it, and what it counts from.
struct LogTime {
  enum class Kind {
    kCalendar,  // a date and time without zone
    kUnix,      // an instant: a number since 1970, or a date and time with a zone
    kElapsed,   // seconds since something else: too small for a time since 1970
    kDay,       // a time of day
    kYearless,  // a month, day and time of day, since the begin of a leap year
  };
  Duration at{};
  Kind kind = Kind::kCalendar;
};

// Seconds, milliseconds, microseconds or nanoseconds since 1970, with a fraction or without; or a
// date and time with '-' or '/', a blank or a T, a point or comma before digits of a second, and no
// zone, "Z", "UTC" or an offset such as "+01:00"; "Mon Nov 23 14:30:00 2026"; "Nov 23 14:30:00"; or
// a time of day. `unit` of a number: s, ms, us or ns; empty: by its size.
std::optional<LogTime> parse_log_time(std::string_view text, std::string_view unit = {});
// Parses a time as an instant: calendar times are UTC, and numbers count from 1970. Nothing for
// times without a date.
std::optional<RealTime> parse_utc_time(std::string_view text);

// A time in front of each line, as the program `ts` and shell loops write it. `text` loses it.
std::optional<LogTime> take_time_prefix(std::string_view& text);

// "2026-11-21 03:13:59", with a blank or a T between, and up to nine digits of a second.
std::optional<Duration> parse_calendar_time(std::string_view text);

std::optional<Duration> parse_compact_date(std::string_view text);  // "20261121": its midnight
std::optional<Duration> parse_time_of_day(std::string_view text);   // "03:13:59", digits as above

// Seconds with a fraction, up to 2199 when they count from 1970. The digits are kept exactly.
std::optional<Duration> parse_seconds(std::string_view text);

// How far the clocks of this machine's time zone are ahead of UTC at an instant.
Duration zone_offset(Duration instant);
// The instants at which these clocks show a calendar time. They are two in the hour that is
// repeated at the end of summer time, and none in the hour that is skipped at its begin.
struct LocalInstants {
  Duration first{};
  Duration last{};
  bool any = true;
};
LocalInstants instants_of(Duration shown);
// The instant at which a clock of UTC shows `calendar`.
RealTime utc_to_real(Duration calendar);

// --- Texts and lines ---

class RecordingBuilder;

// The length of the sequence that `all` holds once or several times, one after the other. Copies of
// a log in one file are found so where rows have no times.
template <typename T, typename Equal = std::equal_to<>>
std::size_t repeated_whole(const std::vector<T>& all, Equal same = {}) {
  std::vector<std::size_t> borders(all.size());  // of Knuth, Morris and Pratt
  for (std::size_t i = 1; i < all.size(); ++i) {
    std::size_t border = borders[i - 1];
    while (border > 0 && !same(all[i], all[border])) border = borders[border - 1];
    borders[i] = border + (same(all[i], all[border]) ? 1 : 0);
  }
  const std::size_t once = all.empty() ? 0 : all.size() - borders.back();
  return once > 0 && all.size() % once == 0 ? once : all.size();
}

// A file in memory.
struct SourceText {
  std::string path;
  std::string text;
  // The times that stood in front of the lines, where they did; `text` no longer has them.
  std::vector<LogTime> line_times = {};
  std::size_t broken = 0;  // pieces that were no UTF-8 (base/text.h)
};

// The text in UTF-8, without a byte order mark, and with line feeds where lines end in carriage
// returns alone. Windows writes UTF-16, with a mark or without.
// Errors: unsupported for what is no text.
Result<std::string> utf8_text(std::string text, const std::string& path);

// The file's content as utf8_text, mended; unpacked where gzip compressed it. Errors: as read_file,
// unsupported, and corrupt for damaged gzip data.
Result<SourceText> read_source(const std::filesystem::path& file, std::size_t limit);

// The source without the times in front of its lines; nothing where one of the first lines has
// none.
std::optional<SourceText> without_time_prefixes(const SourceText& source);

class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  // Goes to the next line; false at the end.
  bool next();

  std::string_view text() const { return text_; }  // without its line end
  std::size_t number() const { return number_; }   // from one
  // False for a last line without a line end: it may have been cut off in the middle of a number.
  bool ended() const { return ended_; }

 private:
  std::string_view rest_;
  std::string_view text_;
  std::size_t number_ = 0;
  bool ended_ = false;
};

// corrupt: "PATH, line N: MESSAGE".
tl::unexpected<Error> fail_at(const SourceText& source, std::size_t line, std::string_view message);

// A part of a file for a one-line message: short, without control characters.
std::string show(std::string_view text, std::size_t longest = 40);

// The warning about a last line that was left out.
std::string cut_off_warning(std::string_view path, std::size_t line);

// Checks a last line without a line end: a file may lack it, or may be cut off within a number.
class LastLine {
 public:
  // The last field of each line before, as it is written.
  void note(std::string_view field) { shortest_ = std::min(shortest_, field.size()); }
  // Whether such a field may be the begin of a longer one: it is shorter than all before.
  bool may_be_cut(std::string_view field) const {
    return shortest_ != std::string_view::npos && field.size() < shortest_;
  }

 private:
  std::size_t shortest_ = std::string_view::npos;
};

// Rows that are left out because they cannot be right: the file's others count.
class BadRows {
 public:
  // Takes the row of a line; false where it is left out. `take` says why it cannot be right. A last
  // line without a line end is left out with a warning of its own, also where its last field, as it
  // is written, may be the begin of a longer one.
  bool take(const SourceText& source, const Lines& line, std::string_view last_field,
            RecordingBuilder& builder, const std::function<std::optional<std::string>()>& take);
  // The rows that follow have other fields.
  void begin_columns() { last_line_ = {}; }
  void add(std::size_t line, std::string why);
  std::size_t count() const { return count_; }
  // A warning for each reason, or for the first few; empty where there is none.
  std::vector<std::string> warnings() const;
  // corrupt, with the first reason, where more rows are bad than `good`.
  Result<void> check(const SourceText& source, std::size_t good) const;

 private:
  struct First {
    std::size_t line = 0;
    std::string why;
  };
  LastLine last_line_;
  std::size_t count_ = 0;
  std::optional<First> first_;
};

// --- The cells of logs and tables: columns by name, values with units ---

// A line of CSV, each cell trimmed; empty where its quotes do not end.
std::vector<std::string> csv_cells(std::string_view line);

// The header's names, as csv_cells gives them; empty when `text` has no line. For recognising a
// format.
std::vector<std::string> csv_header(std::string_view text);

// Whether a row was cut off and runs into the next, which is whole: then it has more cells than
// columns, of which a column of free text would take the rest. `begins`: whether a row begins at
// the end of a cell.
bool runs_into_next(std::span<const std::string> cells, std::size_t columns,
                    const std::function<bool(std::size_t cell)>& begins);
// That a row has another number of cells than its header; of numbers that commas cut in two, what
// to do.
std::string fields_text(std::span<const std::string> cells, std::size_t columns);
std::optional<std::size_t> find_column(const std::vector<std::string>& header,
                                       std::string_view name);

// Whether the text's header has a column of each group of names. For recognising a format.
using ColumnGroups = std::initializer_list<std::initializer_list<std::string_view>>;
bool has_columns(std::string_view text, ColumnGroups groups);

// The "N" of a name such as "gpuN_energy"; nothing for any other name.
std::optional<int> numbered_column(std::string_view name, std::string_view prefix,
                                   std::string_view suffix);

// A cell may carry its unit: "61 W", "pwr [W]", "Power (mW)".
struct WithUnit {
  std::string_view word;
  std::string_view unit;  // empty: none
};
WithUnit split_unit(std::string_view cell);

// A column's name, and the unit of its values that ends it: "node power [kW]", "gpu_power_mw",
// "Processor Power_0(Watt)", "total kilowatts".
struct NameWithUnit {
  std::string_view name;
  std::string unit;       // as tables of units have it; empty: none, or in brackets another text
  std::string_view text;  // in brackets
};
NameWithUnit split_name(std::string_view column);

// A column's name as it is compared, in lower case without blanks, '_', '#' and quotes:
// "#activepow1" and "Active Power 1" alike.
std::string plain_name(std::string_view name);
// Whether a column of this plain name has the times of its rows.
bool is_time_name(std::string_view plain);

// What a device of this name is: "gpu0", "cpu", "package-0", "dram", "psys", "socket1".
std::optional<model::DomainKind> kind_of_device(std::string_view device);

// --- Logs whose commas a spreadsheet has made semicolons ---

// Whether its first line with a header of nvidia-smi has semicolons, and no comma.
bool has_semicolons(std::string_view text);

// The log as its tool writes it: commas between cells, points in numbers. Line for line.
// Errors: corrupt where a number can be read in two ways; it says what to do.
Result<std::string> with_commas(const SourceText& source);

}  // namespace jouleprof::importers
