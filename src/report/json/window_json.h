// The windows of a profile as JSON.
#pragma once

#include "model/profile.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

// The list `windows` of docs/json.md.
// Adds rest, held and active energy with their intervals, and why one is absent.
void add_levels(Json& to, const model::EnergyLevels& levels);

Json windows_json(const model::Profile& profile);

}  // namespace jouleprof::report
