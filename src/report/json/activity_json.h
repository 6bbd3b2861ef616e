// A table of attributed energy as a JSON object (docs/json.md).
#pragma once

#include <vector>

#include "model/activity/activity_profile.h"
#include "report/activity/activity.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

Json activity_document(const std::vector<model::ActivityProfile>& profiles,
                       const ActivityOptions& options);

}  // namespace jouleprof::report
