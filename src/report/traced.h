// What formats of attributed energy start from.
#pragma once

#include <vector>

#include "analysis/run.h"
#include "base/result.h"
#include "model/activity_profile.h"

namespace jouleprof::report {

// run.activity(part), which has at least one profile. Errors: as Run::activity(); unavailable, with
// what the recording says of its tracing, when nothing was traced.
Result<const std::vector<model::ActivityProfile>*> traced_activity(const analysis::Run& run,
                                                                   const analysis::Part& part);

// The moments whose readings a table of readings has: of a part its own, of the whole all that was
// recorded. Errors: as Run::span(), of which imported windows without a time are none.
Result<analysis::PartSpan> readings_span(const analysis::Run& run, const analysis::Part& part);

}  // namespace jouleprof::report
