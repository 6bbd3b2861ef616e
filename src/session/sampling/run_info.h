// What a recording says of the machine and the process that made it.
#pragma once

#include "model/recording.h"

namespace jouleprof::session {

// The machine's name and this process's working directory; the rest is the caller's to fill.
model::RunInfo run_info_here(std::string tool_version);

}  // namespace jouleprof::session
