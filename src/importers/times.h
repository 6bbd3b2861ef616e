// Reads dates and times of other tools: the one reader for logs, tables and wall meters.
//
// A calendar time is the nanoseconds since 1970-01-01 00:00 that a clock without time zone would
// show. Years 1970 to 2199.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace jouleprof::importers {

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
// a time of day.
std::optional<LogTime> parse_log_time(std::string_view text);
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
// Smaller times do not count from 1970: they would be an uptime of thirty years.
inline constexpr Duration kFirstUnixTime = std::chrono::seconds{1'000'000'000};
std::optional<Duration> parse_seconds(std::string_view text);

// The instant at which the clocks of this machine's time zone show `calendar`.
RealTime local_to_real(Duration calendar);
// The instant at which a clock of UTC shows `calendar`.
RealTime utc_to_real(Duration calendar);

}  // namespace jouleprof::importers
