// Which variants of kernels ran in replays.
#pragma once

#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/activity/kernel_variants.h"
#include "analysis/activity/variant_mix.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// While a layer ran alone, the variants are those that it runs in place; a kernel's own is the one
// whose launches take as long, which is noted with its replay.
void mix_replays(const model::Recording& recording, const KernelVariants& variants,
                 std::vector<ActivityTable::Replay>& replays, VariantMix& mix);

}  // namespace jouleprof::analysis
