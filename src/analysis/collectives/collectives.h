// Time and energy of collectives, by rank.
//
// The kernel of a collective runs from the time that its rank begins the operation, and spins until
// all others have begun. A matched call (collective_calls.h) is split at the begin of the rank that
// came last: waiting before, transfer after. The energy of a rank's kernel signature, as the
// regression found it, is divided in proportion to these times: an estimate, for the regression
// cannot see the power of waiting by itself. Its interval is that of the signature's energy, and
// the median spread of ends for each call, for the error of the ranks' clocks.
#pragma once

#include <span>

#include "base/result.h"
#include "model/activity/activity_profile.h"
#include "model/activity/collective.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Of calls that begin within the time of their GPU's profile. Errors: as collective_calls().
Result<model::CollectiveProfile> collectives_of(const model::Recording& recording,
                                                std::span<const model::ActivityProfile> activity);

}  // namespace jouleprof::analysis
