// The energy of named windows of work.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analysis/timeline/recording_timelines.h"
#include "base/result.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Tells the timelines that power may change at the windows' edges. To be called before anything is
// asked of them.
void mark_windows(Timelines& timelines, std::span<const model::Window> windows);

// The recording's windows, one group a name, and those that another tool measured. Of a `part`, the
// windows that begin in it, each in full: so parts of a run share no window and lose none. Imported
// windows without a time are in no part. Errors of a sum: window_chains.h, model/window_sum.h.
// O((windows + readings) log readings).
std::vector<model::WindowGroup> window_groups(const model::Recording& recording,
                                              Timelines& timelines,
                                              const std::optional<RecordedSpan>& part);

}  // namespace jouleprof::analysis
