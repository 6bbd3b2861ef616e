// Corrects launches of CUDA graphs whose nodes have timestamps of other launches.
#pragma once

#include <cstddef>
#include <vector>

#include "spans/cupti/aggregate/activity.h"

namespace jouleprof::cupti {

// A graph's launches can be recorded node by node and then as a whole again. CUPTI then writes the
// timestamps of nodes of the later launches into the records of the last launch that was recorded
// node by node, until it hands these over (observed with CUPTI 13.0 and driver 580, not
// documented). The first node there keeps only its begin, and seems to run until a later launch,
// for up to a second. The launch without a record that follows (GraphMode) writes its stamps there,
// too; of it only the call is known.
//
// Replaces such nodes among waiting[first ...] by a whole launch, with the duration of the launch
// whose timestamps they have. Returns the valid nodes: those of other launches unchanged, and for
// these the nodes of the later launch. An unrecorded launch whose stamps were found begins with
// them.
std::vector<Activity> mend_overwritten(std::vector<Activity>& waiting, std::size_t first,
                                       std::vector<UnrecordedLaunch>& unrecorded);

}  // namespace jouleprof::cupti
