// Reads dates and times of other tools.
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

// "2026-11-21 03:13:59", with a blank or a T between, and up to nine digits of a second.
std::optional<Duration> parse_calendar_time(std::string_view text);

std::optional<Duration> parse_compact_date(std::string_view text);  // "20261121": its midnight
std::optional<Duration> parse_time_of_day(std::string_view text);   // "03:13:59", digits as above

// Seconds with a fraction, up to 2199 when they count from 1970. The digits are kept exactly.
std::optional<Duration> parse_seconds(std::string_view text);

// The instant at which the clocks of this machine's time zone show `calendar`.
RealTime local_to_real(Duration calendar);
// The same for UTC.
RealTime utc_to_real(Duration calendar);

}  // namespace jouleprof::importers
