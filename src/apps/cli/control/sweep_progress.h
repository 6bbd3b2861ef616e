// What a sweep says while it runs.
#pragma once

#include <string>

#include "model/sweep.h"
#include "session/sweep/planner.h"

namespace jouleprof::cli {

// "350 W", "1200 MHz".
std::string setting_text(const model::SweepPlan& plan, double setting);

// The head of the table of runs, and the row of the planner's newest run with the time left.
std::string progress_head(const model::SweepPlan& plan);
std::string progress_row(const session::SweepPlanner& planner);
// The row of a run that was only observed.
std::string observed_row(const model::SweepPlan& plan, const model::SweepRun& run);

// What a sweep will do, and what it needs. `trial`: one run at the present setting.
std::string plan_text(const session::SweepPlanner& planner, const model::SweepRun& trial,
                      bool may_set);

}  // namespace jouleprof::cli
