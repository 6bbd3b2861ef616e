// What a reader of a profile should know about the recording it was made from.
#pragma once

#include <string>
#include <vector>

#include "model/recording.h"

namespace jouleprof::analysis {

// Warnings in words, each once: those recorded, and what the data show of [begin, end]: a recording
// that was cut off, a machine that slept, a wall clock that was set, a GPU held back by its power
// or thermal limits.
std::vector<std::string> recording_warnings(const model::Recording& recording, HostTime begin,
                                            HostTime end);

}  // namespace jouleprof::analysis
