// A recording as a further part of a file that has others.
#pragma once

#include <cstddef>
#include <filesystem>

#include "base/result.h"

namespace jouleprof::recording {

// Whether append_recording() could add to `file`. Errors: not_found; invalid_argument for a sweep's
// file; unavailable while another process writes it; as read_recording's.
Result<void> check_appendable(const std::filesystem::path& file);

// Adds `recording` to `file`, which is a recording or a merged file and becomes a merged one. Parts
// that are made here are named after `file` with their number: "train-0001.jprof", ... Until the
// whole is written, `file` stays as it was; `recording` stays in any case. Returns the number of
// the part, as extract_part() takes it. Errors: as check_appendable's and merge_recordings'.
Result<std::size_t> append_recording(const std::filesystem::path& recording,
                                     const std::filesystem::path& file);

}  // namespace jouleprof::recording
