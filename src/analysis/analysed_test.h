// One answer of a Run, for tests that ask only once.
#pragma once

#include <vector>

#include "analysis/run.h"

namespace jouleprof::analysis {

inline Result<model::Profile> profile_of(const model::Recording& recording, const Part& part = {}) {
  return Run(recording).profile(part);
}

inline Result<std::vector<model::ActivityProfile>> activity_of(const model::Recording& recording,
                                                               const Part& part = {}) {
  return Run(recording).activity(part);
}

}  // namespace jouleprof::analysis
