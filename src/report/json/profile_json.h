// The summary as a JSON object (docs/json.md).
#pragma once

#include "model/profile.h"
#include "report/costs.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

// `costs`: may be null.
Json profile_document(const model::Profile& profile, const Costs* costs = nullptr);

}  // namespace jouleprof::report
