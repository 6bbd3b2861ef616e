// Collectives by rank, as people and programs read them.
#pragma once

#include <ostream>
#include <string>

#include "analysis/run.h"
#include "base/result.h"
#include "model/activity/collective_profile.h"
#include "report/render.h"

namespace jouleprof::report {

std::string collectives_to_text(const model::CollectiveProfile& profile,
                                const TextOptions& text = {});

// The ranks' rows and the rank that was waited for longest, for the end of a run. Empty where no
// collectives of two ranks were matched.
std::string collectives_to_brief_text(const model::CollectiveProfile& profile,
                                      const TextOptions& text = {});

// The documented JSON object (docs/json.md).
std::string collectives_to_json(const model::CollectiveProfile& profile);

// "rank 3", or "pid 71" of a process without a number.
std::string rank_name(const model::CollectiveRank& rank);

// run.collectives(part), which has at least one rank. Errors: as traced_activity(); unavailable,
// and why, without collectives.
Result<const model::CollectiveProfile*> traced_collectives(const analysis::Run& run,
                                                           const analysis::Part& part);

}  // namespace jouleprof::report
