// The end of a traced process that did not close its trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// What the process ran in this time may be in no record.
struct LostEnd {
  std::uint32_t trace = 0;  // index into Recording::traces
  HostTime begin{};         // its last record
  HostTime end{};           // its end
};

// Of each process that used a GPU or PyTorch layers, and was killed by a signal or left by _exit.
// Tracers send their records once a second and keep launches for half a second more: at most the
// last 3 s can be missing. Only within [from, to].
std::vector<LostEnd> lost_ends(const model::Recording& recording, std::optional<HostTime> from,
                               std::optional<HostTime> to);

// "python (pid 7) ended without closing its trace (...): what it ran in its last 0.84 s is ..."
std::string lost_text(const model::Recording& recording, const LostEnd& lost);

}  // namespace jouleprof::analysis
