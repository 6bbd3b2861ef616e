// The energy of a domain of which nothing but another tool's windows is known.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "model/recording.h"

namespace jouleprof::analysis {

struct ReportedEnergy {
  Energy energy;
  std::size_t windows = 0;  // in the sum
  std::size_t within = 0;   // within one of those, and not added again
};

// The sum of the outermost windows that have an energy of the domain, without samples of a sweep's
// settings. Errors, unavailable: none
// has; they overlap in part; or several have no time, so that they may overlap.
Result<ReportedEnergy> reported_energy(std::span<const model::ImportedWindow> windows,
                                       model::DomainId domain);

}  // namespace jouleprof::analysis
