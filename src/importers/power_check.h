// Whether the powers of an imported recording can be those of its devices.
#pragma once

#include <string>

#include "base/result.h"
#include "model/recording.h"

namespace jouleprof::importers {

// Compares powers, and mean powers of windows, with the limit that the log itself has, with that of
// the board where its name is known, and with what any such device draws. Single values above it
// are left out, with a warning. Windows above it stay, with one.
// Errors: corrupt where most powers of a device are above it, or its limit is far above all of
// them: a wrong unit, such as milliwatts under [W].
Result<void> check_powers(model::Recording& recording, const std::string& path);

}  // namespace jouleprof::importers
