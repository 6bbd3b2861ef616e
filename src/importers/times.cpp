#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "importers/source_text.h"

namespace jouleprof::importers {
namespace {

bool all_digits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Digits only: parse_integer would also take a sign.
std::optional<std::int64_t> parse_digits(std::string_view text) {
  return all_digits(text) ? parse_integer(text) : std::nullopt;
}

// The digits after a decimal point. More than nine are cut.
std::optional<Duration> parse_fraction(std::string_view digits) {
  const auto value = parse_digits(digits.substr(0, 9));
  if (!value || !all_digits(digits)) return std::nullopt;
  Duration fraction{*value};
  for (std::size_t i = digits.size(); i < 9; ++i) fraction *= 10;
  return fraction;
}

std::optional<Duration> make_date(std::string_view year, std::string_view month,
                                  std::string_view day) {
  const auto y = parse_digits(year), m = parse_digits(month), d = parse_digits(day);
  if (year.size() != 4 || month.size() != 2 || day.size() != 2 || !y || !m || !d) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(*y)},
                                         std::chrono::month{static_cast<unsigned>(*m)},
                                         std::chrono::day{static_cast<unsigned>(*d)}};
  if (!date.ok() || *y < 1970 || *y > 2199) return std::nullopt;
  return std::chrono::sys_days{date}.time_since_epoch();
}

// "+01:00", "-0530", "+08", "Z" or "UTC" at the end of a date and time; `text` loses it. Nothing
// where there is none.
std::optional<Duration> take_zone(std::string_view& text) {
  for (const std::string_view zone : {"Z", "UTC", "GMT"}) {
    if (!text.ends_with(zone)) continue;
    text = trim(text.substr(0, text.size() - zone.size()));
    return Duration{};
  }
  const auto sign = text.find_last_of("+-");
  if (sign == text.npos || sign < 16) return std::nullopt;
  std::string digits(text.substr(sign + 1));
  std::erase(digits, ':');
  if (digits.size() == 2) digits += "00";
  const auto number = parse_digits(digits);
  if (digits.size() != 4 || !number || *number > 1400) return std::nullopt;
  const Duration offset = std::chrono::hours{*number / 100} + std::chrono::minutes{*number % 100};
  const bool is_west = text[sign] == '-';
  text = trim(text.substr(0, sign));
  return is_west ? -offset : offset;
}

// Smaller times do not count from 1970: they would be an uptime of thirty years.
constexpr Duration kFirstUnixTime = std::chrono::seconds{1'000'000'000};

// Nanoseconds as a number times 10^decimals, up to 2199. Its digits are kept exactly, where it has
// no exponent ("9.5e-07").
std::optional<Duration> parse_scaled(std::string_view text, int decimals) {
  auto nanoseconds = scaled_integer(text, decimals);
  const auto number = nanoseconds ? std::nullopt : parse_number(text);
  const double rounded = number.value_or(-1) * std::pow(10, decimals);
  if (rounded >= 0 && rounded < 9e18) nanoseconds = std::llround(rounded);
  if (!nanoseconds || *nanoseconds < 0 || Duration{*nanoseconds} >= kLastUnixTime) {
    return std::nullopt;
  }
  return Duration{*nanoseconds};
}

std::optional<LogTime> count_of(std::string_view text, int decimals) {
  const auto at = parse_scaled(text, decimals);
  if (!at) return std::nullopt;
  return LogTime{*at, *at < kFirstUnixTime ? LogTime::Kind::kElapsed : LogTime::Kind::kUnix};
}

// The unit follows from the size: 1e11 s is the year 5138, 1e11 ms is 1973.
std::optional<LogTime> parse_count(std::string_view text) {
  const std::string_view whole = text.substr(0, text.find('.'));
  if (whole.empty() || !all_digits(whole) || whole.size() > 19) return std::nullopt;
  const std::size_t digits = whole.size() - std::min(whole.find_first_not_of('0'), whole.size());
  return count_of(text, digits <= 11 ? 9 : digits <= 14 ? 6 : digits <= 17 ? 3 : 0);
}

std::optional<std::string> month_number(std::string_view name) {
  constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto month = std::ranges::find(kMonths, name);
  if (month == kMonths.end()) return std::nullopt;
  return fmt::format("{:02}", month - kMonths.begin() + 1);
}

// With the hours of a day for "02:30:00 PM", and with the year first for "23.11.2026" and, where AM
// or PM says that the month comes first, for "11/23/2026".
std::string with_usual_order(std::string_view text) {
  std::string out(text);
  bool is_half_day = false;
  for (const std::string_view half : {" AM", " PM", " am", " pm"}) {
    const auto at = out.find(half), colon = out.find(':');
    if (at == out.npos || colon == 0 || colon > at) continue;
    const auto begin = out.find_last_not_of("0123456789", colon - 1) + 1;
    const auto hour = parse_digits(std::string_view(out).substr(begin, colon - begin));
    if (!hour || *hour < 1 || *hour > 12) return out;
    out.erase(at, half.size());
    const bool is_pm = lower_case(half) == " pm";
    out.replace(begin, colon - begin, fmt::format("{:02}", *hour % 12 + (is_pm ? 12 : 0)));
    is_half_day = true;
  }
  const auto end = std::min(out.find(' '), out.size());
  const char separator = is_half_day ? '/' : '.';
  const auto parts = split(std::string_view(out).substr(0, end), separator);
  if (parts.size() != 3 || parts[2].size() != 4 || end == out.size()) return out;
  const auto first = parse_digits(parts[0]), second = parse_digits(parts[1]);
  if (!first || !second) return out;
  return fmt::format("{}-{:02}-{:02}{}", parts[2], is_half_day ? *first : *second,
                     is_half_day ? *second : *first, std::string_view(out).substr(end));
}

// "Mon Nov 23 14:30:00 2026", as ctime() writes it, and "Nov 23 14:30:00", as syslog does.
std::optional<LogTime> parse_month_name(std::string_view text) {
  const auto words = split_blanks(text);
  const bool is_utc = words.size() == 6 && (words[4] == "UTC" || words[4] == "GMT");  // of date
  const bool has_year = words.size() == 5 || is_utc;
  if (!has_year && words.size() != 3) return std::nullopt;
  const std::size_t first = has_year ? 1 : 0;
  const auto month = month_number(words[first]);
  const auto day = parse_digits(words[first + 1]);
  if (!month || !day || *day > 31) return std::nullopt;
  const std::string_view year = has_year ? words.back() : std::string_view("1972");  // a leap year
  const auto at =
      parse_calendar_time(fmt::format("{}-{}-{:02} {}", year, *month, *day, words[first + 2]));
  if (!at) return std::nullopt;
  if (is_utc) return LogTime{*at, LogTime::Kind::kUnix};
  return LogTime{*at, has_year ? LogTime::Kind::kCalendar : LogTime::Kind::kYearless};
}

}  // namespace

std::optional<LogTime> parse_log_time(std::string_view text, std::string_view unit) {
  text = trim(text);
  if (text.size() > 2 && text.starts_with('[') && text.ends_with(']')) {
    text = text.substr(1, text.size() - 2);
  }
  if (!unit.empty() && parse_number(text)) {
    return count_of(text, unit == "s" ? 9 : unit == "ms" ? 6 : unit == "us" ? 3 : 0);
  }
  if (text.size() < 8) return count_of(text, 9);
  if (const auto count = parse_count(text)) return count;
  const bool is_usual =
      (text[4] == '-' || text[4] == '/') && !text.ends_with('M') && !text.ends_with('m');
  const std::string usual = is_usual ? std::string() : with_usual_order(text);
  if (!is_usual) text = usual;
  if (const auto time = parse_time_of_day(text)) return LogTime{*time, LogTime::Kind::kDay};
  if (const auto named = parse_month_name(text)) return named;
  std::string_view rest = text;
  const auto zone = take_zone(rest);
  std::string calendar(rest);
  if (calendar.size() < 19) return count_of(text, 9);
  if (calendar[4] == '/' && calendar[7] == '/') calendar[4] = calendar[7] = '-';
  if (calendar.size() > 19 && calendar[19] == ',') calendar[19] = '.';
  const auto at = parse_calendar_time(calendar);
  if (!at) return std::nullopt;
  if (!zone) return LogTime{*at, LogTime::Kind::kCalendar};
  return LogTime{*at - *zone, LogTime::Kind::kUnix};
}

std::optional<RealTime> parse_utc_time(std::string_view text) {
  const auto time = parse_log_time(text);
  if (!time || time->kind == LogTime::Kind::kDay || time->kind == LogTime::Kind::kYearless) {
    return std::nullopt;
  }
  return RealTime{time->at};
}

std::optional<LogTime> take_time_prefix(std::string_view& text) {
  const std::string_view line = trim(text);
  // One word, two ("2026-01-01 00:00:00") or three ("Jan  1 00:00:00").
  std::size_t end = 0;
  for (int words = 1; words <= 3; ++words) {
    end = line.find_first_of(" \t,", line.find_first_not_of(" \t", end));
    if (end == line.npos || line[end] == ',') return std::nullopt;
    const auto time = parse_log_time(line.substr(0, end));
    const bool is_time = time && (time->kind != LogTime::Kind::kElapsed || words > 1);
    if (!is_time || (words == 1 && time->kind == LogTime::Kind::kCalendar)) continue;
    text = line.substr(end);
    return time;
  }
  return std::nullopt;
}

std::optional<Duration> parse_compact_date(std::string_view text) {
  if (text.size() != 8) return std::nullopt;
  return make_date(text.substr(0, 4), text.substr(4, 2), text.substr(6, 2));
}

std::optional<Duration> parse_time_of_day(std::string_view text) {
  if (text.size() < 8 || text[2] != ':' || text[5] != ':') return std::nullopt;
  const auto hours = parse_digits(text.substr(0, 2));
  const auto minutes = parse_digits(text.substr(3, 2));
  const auto whole = parse_digits(text.substr(6, 2));
  // 60: a leap second.
  if (!hours || !minutes || !whole || *hours > 23 || *minutes > 59 || *whole > 60) {
    return std::nullopt;
  }
  const Duration time =
      std::chrono::hours{*hours} + std::chrono::minutes{*minutes} + std::chrono::seconds{*whole};
  if (text.size() == 8) return time;
  const auto fraction = text[8] == '.' ? parse_fraction(text.substr(9)) : std::nullopt;
  if (!fraction) return std::nullopt;
  return time + *fraction;
}

std::optional<Duration> parse_calendar_time(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' ||
      (text[10] != ' ' && text[10] != 'T')) {
    return std::nullopt;
  }
  const auto date = make_date(text.substr(0, 4), text.substr(5, 2), text.substr(8, 2));
  const auto time = parse_time_of_day(text.substr(11));
  if (!date || !time) return std::nullopt;
  return *date + *time;
}

std::optional<Duration> parse_seconds(std::string_view text) { return parse_scaled(text, 9); }

Duration zone_offset(Duration instant) {
  const std::time_t whole = std::chrono::floor<std::chrono::seconds>(instant).count();
  std::tm shown{};
  localtime_r(&whole, &shown);
  return std::chrono::seconds{shown.tm_gmtoff};
}

LocalInstants instants_of(Duration shown) {
  constexpr Duration kDay = std::chrono::hours{24};
  const Duration before = shown - zone_offset(shown - kDay);
  const Duration after = shown - zone_offset(shown + kDay);
  const bool has_before = before + zone_offset(before) == shown;
  const bool has_after = after + zone_offset(after) == shown;
  return {has_before ? before : after, has_after ? after : before, has_before || has_after};
}

RealTime utc_to_real(Duration calendar) { return RealTime{calendar}; }

}  // namespace jouleprof::importers
