// The summary as a JSON object (docs/json.md).
#pragma once

#include "model/profile.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

Json profile_document(const model::Profile& profile);

}  // namespace jouleprof::report
