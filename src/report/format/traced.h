// What formats of attributed energy start from.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "analysis/run.h"
#include "base/result.h"
#include "model/activity/activity_profile.h"
#include "report/format/format.h"

namespace jouleprof::report {

// run.activity(part), which has at least one profile. Errors: as Run::activity(); unavailable, with
// what the recording says of its tracing and what records rows of `by`, when nothing was traced.
Result<const std::vector<model::ActivityProfile>*> traced_activity(
    const analysis::Run& run, const analysis::Part& part, ActivityBy by = ActivityBy::kKernel);

// The profile of a part that has windows. Errors: as Run::profile(); unavailable where it has none.
Result<const model::Profile*> profile_with_windows(const analysis::Run& run,
                                                   const analysis::Part& part);

// Writes the table of options.by where it is asked for, else the summary. Errors: as the Run's.
Result<void> write_table_or_summary(
    const analysis::Run& run, const analysis::Part& part, const FormatOptions& options,
    std::ostream& out,
    const std::function<std::string(const std::vector<model::ActivityProfile>&)>& table,
    const std::function<std::string(const model::Profile&)>& summary);

// The moments whose readings a table of readings has: of a part its own, of the whole all that was
// recorded. Errors: as Run::span(), of which imported windows without a time are none.
Result<analysis::PartSpan> readings_span(const analysis::Run& run, const analysis::Part& part);

}  // namespace jouleprof::report
