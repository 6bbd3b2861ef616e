// Power levels that a run observed, for later runs on the same boards.
#pragma once

#include "model/profile.h"

namespace jouleprof::cli {

// Stores the power at rest and while held of each GPU that `profile` observed itself, by UUID.
// A failure is ignored: the next run observes them again.
void store_observed_levels(const model::Profile& profile);

}  // namespace jouleprof::cli
