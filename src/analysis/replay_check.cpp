#include "analysis/replay_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace jouleprof::analysis {
namespace {

constexpr double kMostApart = 0.1;  // of the time in place
constexpr std::size_t kMostNamed = 10;

bool is_within(const model::Trace& trace, std::uint32_t layer, std::uint32_t outer) {
  // A parent's number is lower than its children's.
  while (layer != model::kNone && layer > outer) layer = trace.layers[layer].parent;
  return layer == outer;
}

// What each class did in the forward passes of the layer that was replayed, layers within included.
std::map<std::uint32_t, ActivityTable::Replay::Ran> in_place(const model::Recording& recording,
                                                             const ActivityTable& table,
                                                             const ActivityTable::Replay& replay) {
  std::map<std::uint32_t, ActivityTable::Replay::Ran> out;
  const model::Trace& trace = recording.traces[replay.trace];
  for (const auto& share : table.shares) {
    if (share.trace != replay.trace || share.scope == model::kNone) continue;
    const model::Scope& scope = trace.scopes[share.scope];
    if (scope.phase == model::Phase::kBackward || !is_within(trace, scope.layer, replay.layer)) {
      continue;
    }
    out[share.kernel_class].launches += share.launches;
    out[share.kernel_class].busy += share.busy;
  }
  return out;
}

// How much longer a layer's kernels took alone than in place, as a part; 0: none ran in place.
double longer(const model::Recording& recording, const ActivityTable& table,
              const ActivityTable::Replay& replay) {
  const auto there = in_place(recording, table, replay);
  double alone = 0;
  double expected = 0;
  for (const auto& [k, ran] : replay.ran) {
    const auto found = there.find(k);
    if (found == there.end() || found->second.launches == 0) continue;
    alone += ran.busy;
    expected += static_cast<double>(ran.launches) * found->second.busy /
                static_cast<double>(found->second.launches);
  }
  return expected > 0 ? alone / expected - 1 : 0;
}

}  // namespace

std::vector<std::string> drop_odd_replays(const model::Recording& recording,
                                          const ActivityTable& table, const SmClocks& clocks,
                                          std::vector<SeenPower>& seen) {
  const auto forget = [&](const ActivityTable::Replay& replay) {
    std::erase_if(seen,
                  [&](const SeenPower& s) { return s.end > replay.begin && s.begin < replay.end; });
  };
  if (table.replays.empty()) return {};
  if (auto why = clocks.why_replays_differ()) {
    for (const auto& replay : table.replays) forget(replay);
    return {std::move(*why)};
  }
  std::vector<std::string> odd;
  for (const auto& replay : table.replays) {
    const double more = longer(recording, table, replay);
    if (std::abs(more) <= kMostApart) continue;
    odd.push_back(fmt::format(
        "{} ({:+.0f} %)", recording.traces[replay.trace].layers[replay.layer].name, 100 * more));
    forget(replay);
  }
  if (odd.empty()) return {};
  const std::size_t more = odd.size() > kMostNamed ? odd.size() - kMostNamed : 0;
  odd.resize(std::min(odd.size(), kMostNamed));
  return {
      fmt::format("not learnt from, because alone their kernels took another time than in the "
                  "program: {}{}",
                  fmt::join(odd, ", "), more > 0 ? fmt::format(" and {} more", more) : "")};
}

}  // namespace jouleprof::analysis
