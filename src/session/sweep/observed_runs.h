// The runs of a sweep that changes nothing: the work, grouped by the setting that was found.
#pragma once

#include <vector>

#include "analysis/run.h"
#include "base/result.h"
#include "model/sweep.h"
#include "session/sweep/run_measures.h"

namespace jouleprof::session {

// A time during which all GPUs reported the same power limit.
struct SettingInterval {
  analysis::PartSpan span;
  double watts = 0;
};

// Those within `span`, in order of time. After a change the first second is left out. Errors:
// unavailable where a GPU does not report its limit, or the limits of the GPUs are never the same.
Result<std::vector<SettingInterval>> setting_intervals(const model::Recording& recording,
                                                       const analysis::PartSpan& span);

// One run for each interval, with the units of work that lie in it. Where the command itself is the
// work, it is one run, and unavailable where the setting changed meanwhile. `first`: the number of
// the first run. Errors: of setting_intervals(); unavailable where no unit of work lies in an
// interval.
Result<std::vector<model::SweepRun>> observe_runs(const analysis::Run& run,
                                                  const model::SweepPlan& plan,
                                                  const WorkReport& report, unsigned first);

}  // namespace jouleprof::session
