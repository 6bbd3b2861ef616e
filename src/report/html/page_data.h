// What the page's script draws from.
#pragma once

#include "analysis/run.h"
#include "base/result.h"
#include "report/format/format.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

// Energies of one row over one slice of time, in all.
inline constexpr std::size_t kMostSliceCells = 24'000;

// "profile" is the document of `report --json`, "activity" those of `--by kernel`, `layer`, `range`
// and `phase` with their rows packed (markup.h), "stacks" the energy by phase, layer, range and
// kernel of each device, "slices" energies of rows by time (slices_json.h), and "timeline" power,
// gauges and windows over time. `profile` may be redacted. Errors: as Run::activity().
Result<Json> page_data(const analysis::Run& run, const analysis::Part& part,
                       const FormatOptions& options, const model::Profile& profile,
                       const Costs* costs);

}  // namespace jouleprof::report
