#include "analysis/activity/replay_variants.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "analysis/activity/layer_tree.h"

namespace jouleprof::analysis {
namespace {

VariantMix::Busy of_kernel(const KernelVariants& variants, ActivityTable::Replay& replay) {
  VariantMix::Busy busy;
  for (const auto& [k, ran] : replay.ran) {
    if (ran.launches == 0) continue;
    const auto variant = variants.nearest(k, ran.busy / static_cast<double>(ran.launches));
    if (variant == model::kNone) continue;
    replay.variants[k] = variant;
    busy[variant] = ran.busy;
  }
  return busy;
}

}  // namespace

void mix_replays(const model::Recording& recording, const KernelVariants& variants,
                 std::vector<ActivityTable::Replay>& replays, VariantMix& mix) {
  if (variants.all().empty()) return;
  std::vector<ActivityTable::Replay*> in_order;
  for (auto& replay : replays) in_order.push_back(&replay);
  std::sort(in_order.begin(), in_order.end(),
            [](const auto* a, const auto* b) { return a->begin < b->begin; });
  for (ActivityTable::Replay* replay : in_order) {
    const model::Trace& trace = recording.traces[replay->trace];
    const auto of_layer = [&](std::uint32_t scope) {
      return is_forward_of(trace, scope, replay->layer);
    };
    mix.set(replay->begin, replay->end,
            replay->of_kernel ? of_kernel(variants, *replay)
                              : variants.busy_of(replay->trace, of_layer));
  }
}

}  // namespace jouleprof::analysis
