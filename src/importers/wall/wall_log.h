// Logs of meters at the power supply of a machine.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/wall_log.h"

namespace jouleprof::importers {

// Reads, as its content says:
// - the output of `wattmetre-read` for OmegaWatt meters: "#timestamp,#frame_is_ok,...,#activepowN";
// - the output of `ipmitool dcmi power reading`, again and again, each with a line before it that
//   has the time, or by the time of the BMC, which is taken as UTC;
// - lines of JSON with a time and Redfish's PowerConsumedWatts or PowerWatts.Reading;
// - a CSV file with a column of times and one of watts.
// Times: seconds or milliseconds since 1970, or ISO 8601, in UTC where no zone is given.
// `column`: of the power, with or without "#"; empty: the only one, or of several the only one that
// is not all zero. Rows without a value are left out; those that cannot be right, too, and counted.
// Errors: corrupt, with the line, where most rows cannot be right; invalid_argument where the
// column must be named; unavailable where there are fewer than two readings.
Result<model::WallLog> read_wall_log(std::string_view text, const std::string& file,
                                     const std::string& column = "");

}  // namespace jouleprof::importers
