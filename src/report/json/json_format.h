// The summary and the tables of attributed energy as JSON objects (docs/json.md).
#pragma once

#include <vector>

#include "model/activity/activity_profile.h"
#include "model/activity/serving.h"
#include "model/profile.h"
#include "report/activity/activity.h"
#include "report/costs/costs.h"
#include "report/costs/wall.h"
#include "report/json/values.h"
#include "report/total.h"

namespace jouleprof::report {

// The summary. `costs`, `per`: may be null.
Json profile_document(const model::Profile& profile, const Costs* costs = nullptr,
                      const PerUnit* per = nullptr);

// Requests of inference servers (docs/serving.md).
Json serving_document(const model::ServingProfile& profile, bool being_written);

// The command's part of a domain or of a total; null where it is absent.
Json command_json(const std::optional<model::CommandEnergy>& command);

// How the energy of a domain was determined, and its parts.
Json balance_json(const model::Profile& profile, const model::DomainProfile& domain);

// Money and carbon as JSON.
// The object `costs` of docs/json.md.
Json costs_json(const Costs& costs);

// The object `wall` (docs/json.md).
Json wall_json(const WallComparison& wall);

// A table of attributed energy as a JSON object (docs/json.md).
Json activity_document(const std::vector<model::ActivityProfile>& profiles,
                       const ActivityOptions& options);

}  // namespace jouleprof::report
