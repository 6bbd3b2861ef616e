#include "importers/wall/wall_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "base/file.h"
#include "base/text.h"
#include "importers/stamps.h"

namespace jouleprof::importers {
namespace {

// Later than this as seconds is a time in milliseconds: the year 5138, or 1973.
constexpr double kFirstMilliseconds = 1e11;
constexpr std::int64_t kLastMillisecond = kLastUnixTime / std::chrono::milliseconds{1};

// "+01:00", "-0530", "Z" or nothing at the end of a time; `text` loses it.
std::optional<Duration> take_offset(std::string_view& text) {
  if (text.ends_with('Z')) {
    text.remove_suffix(1);
    return Duration{};
  }
  const auto sign = text.find_last_of("+-");
  if (sign == text.npos || sign < 19) return Duration{};
  std::string digits(text.substr(sign + 1));
  std::erase(digits, ':');
  const auto number = parse_integer(digits);
  if (digits.size() != 4 || !number || *number < 0) return std::nullopt;
  const Duration offset = std::chrono::hours{*number / 100} + std::chrono::minutes{*number % 100};
  const bool is_west = text[sign] == '-';
  text = text.substr(0, sign);
  return is_west ? -offset : offset;
}

}  // namespace

std::optional<RealTime> parse_wall_time(std::string_view text) {
  text = trim(text);
  if (const auto number = parse_number(text); number && *number >= kFirstMilliseconds) {
    const auto milliseconds = parse_integer(text.substr(0, text.find('.')));
    if (!milliseconds || *milliseconds >= kLastMillisecond) return std::nullopt;
    return RealTime{std::chrono::milliseconds{*milliseconds}};
  }
  if (const auto seconds = parse_seconds(text)) return RealTime{*seconds};
  const auto offset = take_offset(text);
  if (!offset) return std::nullopt;
  const auto calendar = parse_calendar_time(text);
  if (!calendar) return std::nullopt;
  return utc_to_real(*calendar - *offset);
}

std::optional<RealTime> parse_ipmi_time(std::string_view text) {
  constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto words = split_blanks(trim(text));
  if (words.size() != 5) return std::nullopt;
  const auto month = std::find(kMonths.begin(), kMonths.end(), words[1]);
  const auto day = parse_integer(words[2]);
  if (month == kMonths.end() || !day) return std::nullopt;
  const auto calendar = parse_calendar_time(
      fmt::format("{}-{:02}-{:02} {}", words[4], month - kMonths.begin() + 1, *day, words[3]));
  if (!calendar) return std::nullopt;
  return utc_to_real(*calendar);
}

}  // namespace jouleprof::importers
