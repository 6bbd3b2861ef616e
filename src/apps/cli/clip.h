// A part of a recording's readings.
#pragma once

#include "model/recording.h"

namespace jouleprof::cli {

// Drops readings outside [begin, end]; what describes them stays.
void clip(model::Recording& recording, HostTime begin, HostTime end);

}  // namespace jouleprof::cli
