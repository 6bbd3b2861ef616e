// Warnings about a recording, for the readers of its profile.
#pragma once

#include <string>
#include <vector>

#include "model/recording.h"

namespace jouleprof::analysis {

// The recorded warnings, and those about the data of [begin, end]: a recording that was cut off, a
// suspended machine, a wall clock that was set, a GPU at its power or temperature limits.
std::vector<std::string> recording_warnings(const model::Recording& recording, HostTime begin,
                                            HostTime end);

}  // namespace jouleprof::analysis
