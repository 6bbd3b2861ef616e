#include "importers/stamps.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>

#include "base/text.h"

namespace jouleprof::importers {
namespace {

constexpr std::int64_t kLastSecond = kLastUnixTime / std::chrono::seconds{1};

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
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

}  // namespace

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

std::optional<Duration> parse_seconds(std::string_view text) {
  const auto point = text.find('.');
  const auto whole = parse_digits(text.substr(0, point));
  if (!whole) {
    // Python writes very short times as 9.5e-07.
    const auto number = parse_number(text);
    if (!number || *number < 0 || *number >= static_cast<double>(kLastSecond)) return std::nullopt;
    return duration_of(*number);
  }
  if (*whole >= kLastSecond) return std::nullopt;
  const Duration time = std::chrono::seconds{*whole};
  if (point == std::string_view::npos) return time;
  if (const auto fraction = parse_fraction(text.substr(point + 1))) return time + *fraction;
  const auto number = parse_number(text);  // 1.5e+03
  if (!number || *number < 0 || *number >= static_cast<double>(kLastSecond)) return std::nullopt;
  return duration_of(*number);
}

RealTime local_to_real(Duration calendar) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(calendar);
  const std::time_t seconds = whole.count();
  std::tm shown{};
  gmtime_r(&seconds, &shown);
  shown.tm_isdst = -1;  // unknown
  return RealTime{std::chrono::seconds{std::mktime(&shown)} + (calendar - whole)};
}

RealTime utc_to_real(Duration calendar) { return RealTime{calendar}; }

}  // namespace jouleprof::importers
