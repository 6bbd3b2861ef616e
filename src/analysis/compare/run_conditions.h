// The conditions of a run, from its gauges and records.
#pragma once

#include <vector>

#include "analysis/compare/figures.h"
#include "model/activity/activity_profile.h"
#include "model/profile.h"

namespace jouleprof::analysis {

Conditions conditions_of(const Run& run, const model::Profile& profile,
                         const std::vector<model::ActivityProfile>& activity);

}  // namespace jouleprof::analysis
