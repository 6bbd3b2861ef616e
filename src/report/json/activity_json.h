// A table of attributed energy as a JSON object (docs/json.md).
#pragma once

#include <vector>

#include "model/activity/activity_profile.h"
#include "model/profile.h"
#include "report/activity/activity.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

Json activity_document(const std::vector<model::ActivityProfile>& profiles,
                       const ActivityOptions& options);

// The windows of a profile as JSON.

// The list `windows` of docs/json.md.
// Adds rest, held and active energy with their intervals, and why one is absent.
void add_levels(Json& to, const model::EnergyLevels& levels);

Json windows_json(const model::Profile& profile);

}  // namespace jouleprof::report
