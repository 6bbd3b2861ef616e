// What the page's script draws from.
#pragma once

#include "analysis/run.h"
#include "base/result.h"
#include "report/format.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

// "profile" is the document of `report --json`, "activity" those of `--by kernel`, `layer`, `range`
// and `phase` with their rows packed (markup.h), "stacks" the energy by phase, layer, range and
// kernel of each device, and "timeline" power, gauges and windows over time. `profile` may be
// redacted. Errors: as Run::activity().
Result<Json> page_data(const analysis::Run& run, const analysis::Part& part,
                       const FormatOptions& options, const model::Profile& profile,
                       const Costs* costs);

}  // namespace jouleprof::report
