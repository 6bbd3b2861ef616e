// The variants of kernels in isolated re-runs.
#pragma once

#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/activity/kernel_variants.h"
#include "analysis/activity/variant_mix.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// In the re-run of a layer, the variants are those of the layer in place. In the re-run of a kernel
// it is the one with the closest time of a launch, which is stored in Replay::variants.
void mix_replays(const model::Recording& recording, const KernelVariants& variants,
                 std::vector<ActivityTable::Replay>& replays, VariantMix& mix);

}  // namespace jouleprof::analysis
