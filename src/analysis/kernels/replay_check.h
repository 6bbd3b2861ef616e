// Whether layers and kernels that were run alone ran there as they do in place.
#pragma once

#include <string>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/activity/sm_clocks.h"
#include "analysis/timeline/seen_power.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Drops from `seen` what was read while a layer, or a kernel of it, was replayed whose kernels took
// another time there than in the same layer's forward passes in place, launch for launch: then they
// did other work, or met a warmer cache, and drew another power. Of the others it drops the slots
// in which launches were slower than in place, as on a board that has met its power limit. Drops
// all that was read during replays on `domain` where clocks were not the program's. Returns what is
// to be said of it.
std::vector<std::string> drop_odd_replays(const model::Recording& recording,
                                          const ActivityTable& table, const SmClocks& clocks,
                                          std::vector<SeenPower>& seen);

}  // namespace jouleprof::analysis
