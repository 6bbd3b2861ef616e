// The energy of named windows of work.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "analysis/levels/board_levels.h"
#include "analysis/timeline/recording_timelines.h"
#include "base/result.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Marks the windows' edges on the timelines. To be called before any query.
void mark_windows(Timelines& timelines, std::span<const model::Window> windows);

// The energy of windows of one name from what they have in common, where that is known better than
// the sum of their single energies. Empty function: none.
using CommonEnergy =
    std::function<std::optional<model::Measurement>(std::span<const model::Window* const>)>;

// Whether it replaces that sum: its interval is narrower, and the two overlap.
bool replaces(const model::Measurement& common, const model::Measurement& sum);

// The recording's windows, one group for each name, and those imported from another tool. A `part`
// contains the windows that begin in it, in full, so that parts of a run partition its windows.
// Imported windows without a time are in no part. Errors of a sum: window_chains.h,
// model/window_sum.h. `levels`, `common`: by domain, in the recording's order; may be empty. The
// common energy may replace the sum.
// O((windows + readings) log readings).
std::vector<model::WindowGroup> window_groups(const model::Recording& recording,
                                              Timelines& timelines,
                                              std::span<const BoardLevels> levels,
                                              std::span<const CommonEnergy> common,
                                              const std::optional<RecordedSpan>& part);

// The energy of a domain of which nothing but another tool's windows is known.
struct ReportedEnergy {
  Energy energy;
  std::size_t windows = 0;  // in the sum
  std::size_t within = 0;   // within one of those, and not added again
  std::size_t lacking = 0;  // without an energy of the domain, and within none that has one
};

// The sum of the outermost windows that have an energy of the domain, without samples of a sweep's
// settings. Errors: unavailable where none has, where they overlap in part, or where several have
// no time, so that they may overlap.
Result<ReportedEnergy> reported_energy(std::span<const model::ImportedWindow> windows,
                                       model::DomainId domain);

}  // namespace jouleprof::analysis
