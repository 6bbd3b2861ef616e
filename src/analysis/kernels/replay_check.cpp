#include "analysis/kernels/replay_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/activity/layer_tree.h"
#include "base/demangle.h"

namespace jouleprof::analysis {
namespace {

constexpr double kMostApart = 0.1;  // of the time in place
constexpr double kMostHeld = 0.03;  // the same: of a slot, where a power limit slows kernels
constexpr std::size_t kMostNamed = 10;

// What each class did in the forward passes of the layer that was replayed, layers within included.
ActivityTable::Replay::ByClass in_place(const model::Recording& recording,
                                        const ActivityTable& table,
                                        const ActivityTable::Replay& replay) {
  ActivityTable::Replay::ByClass out;
  const model::Trace& trace = recording.traces[replay.trace];
  for (const auto& share : table.shares) {
    if (share.trace != replay.trace || !is_forward_of(trace, share.scope, replay.layer)) continue;
    // Of a kernel alone: launches that do the same work.
    if (replay.of_kernel && share.variant != replay.variant_of(share.kernel_class)) continue;
    out[share.kernel_class].launches += share.launches;
    out[share.kernel_class].busy += share.busy;
  }
  return out;
}

// How much longer kernels took alone than in place, as a part; 0: none ran in place.
double longer(const ActivityTable::Replay::ByClass& there,
              const ActivityTable::Replay::ByClass& alone_by_class) {
  double alone = 0;
  double expected = 0;
  for (const auto& [k, ran] : alone_by_class) {
    const auto found = there.find(k);
    if (found == there.end() || found->second.launches == 0) continue;
    alone += ran.busy;
    expected += static_cast<double>(ran.launches) * found->second.busy /
                static_cast<double>(found->second.launches);
  }
  return expected > 0 ? alone / expected - 1 : 0;
}

// The layer, or the kernel that it mostly ran.
std::string name_of(const model::Recording& recording, const ActivityTable& table,
                    const ActivityTable::Replay& replay) {
  if (!replay.of_kernel || replay.ran.empty()) {
    return recording.traces[replay.trace].layers[replay.layer].name;
  }
  const auto most =
      std::max_element(replay.ran.begin(), replay.ran.end(),
                       [](const auto& a, const auto& b) { return a.second.busy < b.second.busy; });
  return demangle(table.classes[most->first].key.name);
}

}  // namespace

std::vector<std::string> drop_odd_replays(const model::Recording& recording,
                                          const ActivityTable& table, const SmClocks& clocks,
                                          std::vector<SeenPower>& seen) {
  const auto forget = [&](double begin, double end) {
    std::erase_if(seen, [&](const SeenPower& s) { return s.end > begin && s.begin < end; });
  };
  if (table.replays.empty()) return {};
  if (auto why = clocks.why_replays_differ()) {
    for (const auto& replay : table.replays) forget(replay.begin, replay.end);
    return {std::move(*why)};
  }
  std::vector<std::string> odd;
  for (const auto& replay : table.replays) {
    const auto there = in_place(recording, table, replay);
    const double more = longer(there, replay.ran);
    if (std::abs(more) <= kMostApart) {
      for (std::size_t i = 0; i < replay.slots.size(); ++i) {
        if (longer(there, replay.slots[i]) > kMostHeld) {
          const double begin = replay.begin + static_cast<double>(i) * replay.kSlot;
          forget(begin, begin + replay.kSlot);
        }
      }
      continue;
    }
    odd.push_back(fmt::format("{} ({:+.0f} %)", name_of(recording, table, replay), 100 * more));
    forget(replay.begin, replay.end);
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
