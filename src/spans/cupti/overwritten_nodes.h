// Mends launches of CUDA graphs whose nodes' records are not their own.
#pragma once

#include <cstddef>
#include <vector>

#include "spans/cupti/activity.h"

namespace jouleprof::cupti {

// Where a graph's launches are recorded node by node and then as a whole again, the later ones, of
// which nobody asks for nodes, still leave their nodes' stamps in the records of the last launch
// that was recorded node by node, until these are handed over (seen with CUPTI 13.0 and driver 580;
// its documentation does not say so). What ran first there keeps its begin alone, and seems to run
// until a later launch does, for up to a second.
//
// Puts a whole launch in place of such nodes among waiting[first ...], as long as the one whose
// stamps they have. Returns the nodes by which a graph's launches can be judged: those of other
// launches as they are, and of these the later launch's.
std::vector<Activity> mend_overwritten(std::vector<Activity>& waiting, std::size_t first);

}  // namespace jouleprof::cupti
