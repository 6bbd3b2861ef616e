#include "importers/source_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/gzip/gzip.h"
#include "base/text.h"
#include "importers/builder.h"

namespace jouleprof::importers {

namespace {

// A surrogate without its other half becomes U+FFFD.
std::string from_utf16(std::string_view bytes, bool big_endian) {
  const auto unit = [&](std::size_t at) -> std::uint32_t {
    const std::uint32_t first = static_cast<unsigned char>(bytes[at]);
    const std::uint32_t second = static_cast<unsigned char>(bytes[at + 1]);
    return big_endian ? (first << 8U | second) : (second << 8U | first);
  };
  std::string out;
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    std::uint32_t code = unit(at);
    if (code >= 0xD800 && code < 0xE000) {
      const std::uint32_t low = code < 0xDC00 && at + 3 < bytes.size() ? unit(at + 2) : 0;
      const bool is_pair = low >= 0xDC00 && low < 0xE000;
      code = is_pair ? 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00) : 0xFFFD;
      if (is_pair) at += 2;
    }
    append_utf8(out, code);
  }
  return out;
}

}  // namespace

Result<std::string> utf8_text(std::string text, const std::string& path) {
  constexpr std::size_t kLooked = 64;
  const std::string_view begin = std::string_view(text).substr(0, kLooked);
  std::size_t zeros[2] = {0, 0};
  for (std::size_t i = 0; i < begin.size(); ++i) zeros[i % 2] += begin[i] == '\0';
  const auto most = begin.size() / 4;
  if (begin.starts_with("\xFF\xFE") || begin.starts_with("\xFE\xFF")) {
    text = from_utf16(std::string_view(text).substr(2), begin.starts_with("\xFE"));
  } else if (begin.size() >= 8 && zeros[0] != zeros[1] && std::max(zeros[0], zeros[1]) > most &&
             std::min(zeros[0], zeros[1]) == 0) {
    text = from_utf16(text, zeros[0] > zeros[1]);
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // some editors add it
  // Old spreadsheets and serial terminals end lines so.
  if (text.find('\n') == std::string::npos) std::ranges::replace(text, '\r', '\n');
  if (text.find('\0') != std::string::npos) {
    return fail(
        Errc::kUnsupported,
        text.starts_with("SQLite format 3")
            ? fmt::format("{0}: not a text file; if it is a recording, it needs no import: "
                          "jouleprof report {0}",
                          path)
            : fmt::format("{}: not a text file; unpack it first if it is compressed", path));
  }
  return text;
}

Result<SourceText> read_source(const std::filesystem::path& file, std::size_t limit) {
  auto bytes = read_file(file, limit);
  if (!bytes) return forward_error(bytes);
  if (bytes->starts_with("\x1f\x8b")) {
    std::string unpacked;
    for (std::string_view rest = *bytes; !rest.empty();) {
      const auto member = gunzip_member(rest, limit - unpacked.size());
      if (!member) {
        return fail(Errc::kCorrupt, fmt::format("{}: its gzip data are damaged, cut off or larger "
                                                "than {} MiB; unpack it first",
                                                file.string(), limit >> 20));
      }
      unpacked += *member;
    }
    *bytes = std::move(unpacked);
  }
  auto text = utf8_text(std::move(*bytes), file.string());
  if (!text) return forward_error(text);
  const std::size_t broken = mend_utf8(*text);
  return SourceText{file.string(), std::move(*text), {}, broken};
}

std::optional<SourceText> without_time_prefixes(const SourceText& source) {
  SourceText out{source.path, {}, {}, source.broken};
  for (Lines lines(source.text); lines.next();) {
    std::string_view line = lines.text();
    auto time = take_time_prefix(line);
    if (!time) {
      if (!trim(line).empty() && lines.ended()) return std::nullopt;
      time = out.line_times.empty() ? LogTime{} : out.line_times.back();
    }
    out.line_times.push_back(*time);
    out.text += line;
    if (lines.ended()) out.text += '\n';
  }
  return out;
}

bool BadRows::take(const SourceText& source, const Lines& line, std::string_view last_field,
                   RecordingBuilder& builder,
                   const std::function<std::optional<std::string>()>& take) {
  const bool is_cut = !line.ended() && last_line_.may_be_cut(last_field);
  auto why = is_cut ? std::optional<std::string>("") : take();
  if (!why) {
    last_line_.note(last_field);
  } else if (line.ended()) {
    add(line.number(), std::move(*why));
  } else {
    builder.warn(cut_off_warning(source.path, line.number()));
  }
  return !why;
}

void BadRows::add(std::size_t line, std::string why) {
  ++count_;
  if (!first_) first_ = First{line, std::move(why)};
}

std::vector<std::string> BadRows::warnings() const {
  if (!first_) return {};
  return {fmt::format("{} left out that cannot be right; the first is line {}: {}",
                      counted(count_, "row"), first_->line, first_->why)};
}

Result<void> BadRows::check(const SourceText& source, std::size_t good) const {
  if (!first_ || count_ <= good) return {};
  return fail_at(source, first_->line, first_->why);
}

bool Lines::next() {
  if (rest_.empty()) return false;
  const auto end = rest_.find('\n');
  ended_ = end != std::string_view::npos;
  text_ = rest_.substr(0, end);
  rest_.remove_prefix(ended_ ? end + 1 : rest_.size());
  if (text_.ends_with('\r')) text_.remove_suffix(1);
  ++number_;
  return true;
}

tl::unexpected<Error> fail_at(const SourceText& source, std::size_t line,
                              std::string_view message) {
  return fail(Errc::kCorrupt, fmt::format("{}, line {}: {}", source.path, line, message));
}

std::string show(std::string_view text, std::size_t longest) {
  std::string shown(text.substr(0, longest));
  std::ranges::replace_if(
      shown, [](unsigned char c) { return c < 0x20 || c >= 0x7F; }, '?');
  return fmt::format("'{}{}'", shown, text.size() > longest ? "..." : "");
}

std::string cut_off_warning(std::string_view path, std::size_t line) {
  return fmt::format(
      "{}, line {}: the last line has no line end, so it may be cut off: it is left out", path,
      line);
}

std::vector<std::string> csv_cells(std::string_view line) {
  auto fields = split_csv(line);
  if (!fields) return {};
  for (std::string& field : *fields) field = std::string(trim(field));
  return std::move(*fields);
}

std::vector<std::string> csv_header(std::string_view text) {
  Lines lines(text);
  return lines.next() ? csv_cells(lines.text()) : std::vector<std::string>{};
}

bool runs_into_next(std::span<const std::string> cells, std::size_t columns,
                    const std::function<bool(std::size_t cell)>& begins) {
  for (std::size_t i = 1; i + columns <= cells.size(); ++i) {
    if (begins(i)) return true;
  }
  return false;
}

std::string fields_text(std::span<const std::string> cells, std::size_t columns) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  bool is_cut = false;
  for (std::size_t i = 1; i < cells.size(); ++i) {
    const auto& whole = cells[i - 1];
    is_cut = is_cut || (!whole.empty() && std::ranges::all_of(whole, is_digit) &&
                        !cells[i].empty() && is_digit(cells[i].front()));
  }
  return fmt::format("{} fields under a header of {}{}", cells.size(), columns,
                     cells.size() > columns && is_cut
                         ? "; if its numbers have decimal commas, write them with points"
                         : "");
}

std::optional<std::size_t> find_column(const std::vector<std::string>& header,
                                       std::string_view name) {
  const auto found = std::ranges::find(header, name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

bool has_columns(std::string_view text, ColumnGroups groups) {
  const auto header = csv_header(text);
  return std::ranges::all_of(groups, [&](const auto& group) {
    return std::ranges::any_of(
        group, [&](std::string_view name) { return find_column(header, name).has_value(); });
  });
}

std::optional<int> numbered_column(std::string_view name, std::string_view prefix,
                                   std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  if (name.size() <= prefix.size() + suffix.size()) return std::nullopt;
  name = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  const auto number = parse_integer(name);
  if (!number || *number < 0 || *number > 65535) return std::nullopt;
  return static_cast<int>(*number);
}

WithUnit split_unit(std::string_view cell) {
  const auto blank = cell.find_first_of(" \t");
  if (blank == std::string_view::npos) return {cell, {}};
  std::string_view unit = trim(cell.substr(blank));
  if (unit.size() > 2 && ((unit.starts_with('[') && unit.ends_with(']')) ||
                          (unit.starts_with('(') && unit.ends_with(')')))) {
    unit = unit.substr(1, unit.size() - 2);
  }
  return {cell.substr(0, blank), unit};
}

std::string plain_name(std::string_view name) {
  std::string out = lower_case(trim(name));
  std::erase_if(out, [](char c) { return c == '#' || c == ' ' || c == '_' || c == '"'; });
  return out;
}

bool is_time_name(std::string_view plain) {
  constexpr std::array<std::string_view, 7> kNames{
      "time", "timestamp", "date", "datetime", "timeunixseconds", "epoch", "timeutc"};
  return std::ranges::find(kNames, plain) != kNames.end();
}

NameWithUnit split_name(std::string_view column) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kUnits{
      {{"w", "W"},
       {"watt", "W"},
       {"kw", "kW"},
       {"kilowatt", "kW"},
       {"mw", "mW"},
       {"milliwatt", "mW"},
       {"uw", "uW"},
       {"microwatt", "uW"},
       {"megawatt", "MW"},
       {"j", "J"},
       {"mj", "mJ"},
       {"kj", "kJ"},
       {"wh", "Wh"},
       {"kwh", "kWh"},
       {"s", "s"},
       {"ms", "ms"},
       {"us", "us"},
       {"ns", "ns"}}};
  const auto unit_of = [&](std::string_view word) -> std::string {
    if (word == "MW") return "MW";  // "mw" is milliwatts, as sensors have them
    std::string lower = lower_case(word);
    if (lower.starts_with("sec")) lower = "s";
    for (const auto& [name, unit] : kUnits) {
      if (lower == name || (name.size() > 3 && lower == fmt::format("{}s", name))) {
        return std::string(unit);
      }
    }
    return {};
  };
  column = trim(column);
  const auto open = column.find_last_of("[(");
  if (open != column.npos && (column.ends_with(']') || column.ends_with(')'))) {
    const std::string_view text = column.substr(open + 1, column.size() - open - 2);
    return {trim(column.substr(0, open)), unit_of(text), text};
  }
  const auto end = column.find_last_of("_ ");
  std::string unit = end == column.npos ? "" : unit_of(column.substr(end + 1));
  return {unit.empty() ? column : column.substr(0, end), std::move(unit), {}};
}

std::optional<model::DomainKind> kind_of_device(std::string_view device) {
  using model::DomainKind;
  constexpr std::array<std::pair<std::string_view, DomainKind>, 12> kPrefixes{
      {{"gpu", DomainKind::kGpu},
       {"cpu", DomainKind::kCpu},
       {"package", DomainKind::kCpu},
       {"dram", DomainKind::kDram},
       {"ram", DomainKind::kDram},
       {"cores", DomainKind::kCpuCores},
       {"uncore", DomainKind::kCpuUncore},
       {"psys", DomainKind::kPlatform},
       {"platform", DomainKind::kPlatform},
       {"socket", DomainKind::kPlatform},
       {"node", DomainKind::kPlatform},
       {"module", DomainKind::kModule}}};
  for (const auto& [prefix, kind] : kPrefixes) {
    if (device.starts_with(prefix)) return kind;
  }
  return std::nullopt;
}

namespace {

constexpr std::size_t kMessages = 5;  // lines before the header

bool is_header(std::string_view line) {
  return line.find("power.draw") != std::string_view::npos ||
         line.find("timestamp") != std::string_view::npos;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// "81,25 W": digits, one separator, digits, and maybe a unit. The place of the separator.
std::optional<std::size_t> separator_of(std::string_view cell, std::size_t& decimals) {
  const std::size_t at = cell.find_first_not_of("-0123456789");
  if (at == std::string_view::npos || at == 0 || (cell[at] != ',' && cell[at] != '.')) {
    return std::nullopt;
  }
  std::size_t end = at + 1;
  while (end < cell.size() && is_digit(cell[end])) ++end;
  decimals = end - at - 1;
  if (decimals == 0 || (end < cell.size() && cell[end] != ' ')) return std::nullopt;
  return at;
}

class Rewriting {
 public:
  explicit Rewriting(const SourceText& source) : source_(source), lines_(source.text) {}

  Result<std::string> run() {
    std::string out;
    while (lines_.next()) {
      const auto cells = split(lines_.text(), ';');
      if (is_header(lines_.text())) note_texts(cells);
      for (std::size_t i = 0; i < cells.size(); ++i) {
        auto cell = rewritten(unquoted(trim(cells[i])), i < texts_.size() && texts_[i]);
        if (!cell) return forward_error(cell);
        out += (i > 0 ? ", " : "") + *cell;
      }
      if (lines_.ended()) out += '\n';
    }
    return out;
  }

 private:
  static std::string unquoted(std::string_view cell) {
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {
      cell = trim(cell.substr(1, cell.size() - 2));
    }
    return std::string(cell);
  }

  // "550.54" of a driver is no number.
  void note_texts(const std::vector<std::string_view>& names) {
    texts_.clear();
    for (const auto name : names) {
      texts_.push_back(name.find("version") != std::string_view::npos ||
                       name.find("name") != std::string_view::npos);
    }
  }

  Result<std::string> rewritten(std::string cell, bool is_text) {
    constexpr std::size_t kFraction = 19;  // of "2026/08/17 22:35:54,844"
    if (cell.size() > kFraction && cell[kFraction] == ',' && (cell[4] == '/' || cell[4] == '-')) {
      cell[kFraction] = '.';
      return cell;
    }
    std::size_t decimals = 0;
    const auto at = is_text ? std::nullopt : separator_of(cell, decimals);
    if (at) {
      // "1,234" may be; "0,003" and "12345,678" are none.
      const std::size_t first = cell[0] == '-' ? 1 : 0;
      if (decimals == 3 && *at - first <= 3 && cell[first] != '0') {
        return unclear(cell, "may be a number of thousands");
      }
      if (decimal_ != 0 && decimal_ != cell[*at]) {
        return unclear(cell, "has another decimal separator than the numbers before");
      }
      decimal_ = cell[*at];
      cell[*at] = '.';
      return cell;
    }
    if (cell.find(',') == std::string::npos) return cell;
    if (!is_text && !cell.empty() && (is_digit(cell[0]) || cell[0] == '-')) {
      return unclear(cell, "is no number with one decimal comma");
    }
    std::ranges::replace(cell, ',', ' ');  // of a name, which is not used
    return cell;
  }

  tl::unexpected<Error> unclear(const std::string& cell, std::string_view why) const {
    return fail_at(source_, lines_.number(),
                   fmt::format("semicolons between the cells, and {} {}; give the file as "
                               "it was written, or save this one with commas between the cells "
                               "and decimal points",
                               show(cell), why));
  }

  const SourceText& source_;
  Lines lines_;
  char decimal_ = 0;         // the separator, once it was found
  std::vector<bool> texts_;  // columns
};

}  // namespace

bool has_semicolons(std::string_view text) {
  for (Lines lines(text); lines.next() && lines.number() <= kMessages;) {
    const std::string_view line = lines.text();
    if (!is_header(line)) continue;
    return line.find(';') != std::string_view::npos && line.find(',') == std::string_view::npos;
  }
  return false;
}

Result<std::string> with_commas(const SourceText& source) { return Rewriting(source).run(); }

}  // namespace jouleprof::importers
