#include "analysis/activity/replay_loops.h"

#include <algorithm>

#include "model/activity/activity_codec.h"

namespace jouleprof::analysis {

std::optional<std::vector<ActivityTable::Replay>> replay_loops(const model::Trace& trace,
                                                               std::uint32_t index,
                                                               const TimeBase& time) {
  std::vector<ActivityTable::Replay> out;
  for (const auto& chunk : trace.chunks) {
    if (chunk.kind != model::ChunkKind::kReplay) continue;
    model::ActivityDecoder decoder(chunk.bytes);
    for (model::LayerEntry e; decoder.next(e);) {
      if (e.layer >= trace.layers.size()) return std::nullopt;
      ActivityTable::Replay& loop = out.emplace_back();
      loop.trace = index;
      loop.layer = e.layer;
      loop.of_kernel = e.calls == 0;
      loop.begin = time.seconds_of(chunk.begin);
      loop.end = time.seconds_of(chunk.end);
    }
    if (!decoder.ok()) return std::nullopt;
  }
  return out;
}

void add_to_loop(std::span<ActivityTable::Replay> loops, double t, std::uint32_t kernel_class,
                 const ActivityTable::Replay::Ran& more) {
  const auto at = std::find_if(loops.begin(), loops.end(),
                               [t](const auto& loop) { return t >= loop.begin && t < loop.end; });
  if (at == loops.end()) return;
  const auto slot = static_cast<std::size_t>((t - at->begin) / ActivityTable::Replay::kSlot);
  if (at->slots.size() <= slot) at->slots.resize(slot + 1);
  for (auto* ran : {&at->ran[kernel_class], &at->slots[slot][kernel_class]}) {
    ran->launches += more.launches;
    ran->busy += more.busy;
  }
}

}  // namespace jouleprof::analysis
