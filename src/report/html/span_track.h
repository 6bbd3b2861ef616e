// Windows and isolated re-runs over time, reduced to what a screen shows.
#pragma once

#include "analysis/run.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

// {"names": [...], "blocks": [...], "lanes": n}: each block is [lane, name, begin, length, count,
// energies], and of several windows the sum of their lengths. Times are seconds since `origin`. A
// block stands for `count` windows: those too short to be drawn are joined. `energies` is
// [[domain's id, microjoules, error], ...], an error the sum of the windows'; null for windows of
// several names. The name of windows of different names that are joined is -1. Windows that overlap
// are in different lanes.
Json window_track(const analysis::Run& run, const analysis::PartSpan& span, HostTime origin,
                  std::size_t blocks);

// [begin, length, name] of each isolated re-run. Errors: corrupt when a chunk cannot be decoded.
Result<Json> replay_track(const analysis::Run& run, const analysis::PartSpan& span,
                          HostTime origin);

}  // namespace jouleprof::report
