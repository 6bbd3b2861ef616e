// What has to be alike on both sides of a comparison.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/figures.h"
#include "model/activity/activity_profile.h"
#include "model/profile.h"

namespace jouleprof::analysis {

struct Condition {
  std::string code;     // stable: "work_differs", "other_limit", ...
  std::string text;     // what differs, with its figures
  bool blocks = false;  // there is no verdict, unless the code is accepted
};

// Blocking: failed_run, cut_off, domains_differ, work_differs, limit_differs, tracing_differs.
// Others: board_differs, boot_differs, clock_differs, temperature_differs, slowed_by_heat,
// simulated. Both sides have at least one run.
std::vector<Condition> conditions_between(const std::vector<RunFigures>& before,
                                          const std::vector<RunFigures>& after);

// Whether all runs used the same sensors, so that their calibration error cancels.
bool is_same_board(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after);

// The conditions of a run, from its gauges and records.

Conditions conditions_of(const Run& run, const model::Profile& profile,
                         const std::vector<model::ActivityProfile>& activity);

}  // namespace jouleprof::analysis
