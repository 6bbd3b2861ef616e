// The table of --by window: each name of windows with mean, quartiles and dynamic energy.
#pragma once

#include <string>

#include "analysis/run.h"
#include "model/profile.h"
#include "report/render.h"

namespace jouleprof::report {

// The profile of a part that has windows. Errors: as Run::profile(); unavailable where it has none.
Result<const model::Profile*> profile_with_windows(const analysis::Run& run,
                                                   const analysis::Part& part);

// A row for each name and each domain with a figure. All names, in order of first appearance.
std::string windows_to_text(const model::Profile& profile, const TextOptions& options);
// docs/json.md; with a final newline.
std::string windows_to_json(const model::Profile& profile);
// A row for each name and domain.
std::string windows_to_csv(const model::Profile& profile);

}  // namespace jouleprof::report
