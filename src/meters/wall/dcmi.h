// The power that a machine's BMC reports: DCMI's "Get Power Reading" over /dev/ipmi0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "meters/wall/wall_source.h"

namespace jouleprof::meters {

// The answer's bytes, the completion code first. Errors: as the code says, unsupported for most;
// unavailable where the BMC says that it does not measure; corrupt.
Result<WallReading> parse_dcmi_answer(std::string_view bytes);

// What freeipmi's `ipmi-dcmi --get-system-power-statistics` prints. Errors: the same.
Result<WallReading> parse_dcmi_text(std::string_view text);

// Errors: not_found without a device; permission_denied.
Result<std::unique_ptr<WallSource>> open_dcmi(const std::filesystem::path& device);

}  // namespace jouleprof::meters
