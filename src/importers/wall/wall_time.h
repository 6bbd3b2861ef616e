// The times in logs of wall meters. Private to this folder.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace jouleprof::importers {

// Seconds or milliseconds since 1970, or ISO 8601 with "Z", an offset such as "+01:00", or neither:
// UTC.
std::optional<RealTime> parse_wall_time(std::string_view text);

// "Mon Nov 23 14:30:00 2026", as ipmitool prints the BMC's time; taken as UTC.
std::optional<RealTime> parse_ipmi_time(std::string_view text);

}  // namespace jouleprof::importers
