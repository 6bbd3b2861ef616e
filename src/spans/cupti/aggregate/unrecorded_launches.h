// The times of launches of CUDA graphs without a record.
#pragma once

#include <cstdint>
#include <vector>

#include "spans/cupti/aggregate/activity.h"

namespace jouleprof::cupti {

// Launches of one graph run one after the other: an unrecorded one begins at its call or, if that
// is later, at the end of the launch before it, takes as long as a launch next to it, and ends at
// the latest when the next one begins.
//
// Returns those of `unrecorded` that were called before `until`, as whole launches, and removes
// them from it. Those without another launch of their graph in `waiting` are returned without a
// duration, on no known device.
std::vector<Activity> place_unrecorded(std::vector<UnrecordedLaunch>& unrecorded,
                                       const std::vector<Activity>& waiting, std::int64_t until);

}  // namespace jouleprof::cupti
