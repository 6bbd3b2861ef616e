#include "analysis/replay_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace jouleprof::analysis {
namespace {

constexpr double kMostApart = 0.1;  // of the time in place
constexpr std::size_t kMostNamed = 10;

// How much longer a layer's kernels took alone than in place, as a part; 0: none ran in place.
double longer(const ActivityTable& table, const ActivityTable::Replay& replay) {
  double alone = 0;
  double in_place = 0;
  for (const auto& [k, ran] : replay.ran) {
    const auto& c = table.classes[k];
    if (c.launches == 0 || c.busy <= 0) continue;
    alone += ran.busy;
    in_place += static_cast<double>(ran.launches) * c.busy / static_cast<double>(c.launches);
  }
  return in_place > 0 ? alone / in_place - 1 : 0;
}

}  // namespace

std::vector<std::string> drop_odd_replays(const ActivityTable& table,
                                          std::vector<SeenPower>& seen) {
  std::vector<std::string> odd;
  for (const auto& replay : table.replays) {
    const double more = longer(table, replay);
    if (std::abs(more) <= kMostApart) continue;
    odd.push_back(fmt::format("{} ({:+.0f} %)", replay.layer, 100 * more));
    std::erase_if(seen,
                  [&](const SeenPower& s) { return s.end > replay.begin && s.begin < replay.end; });
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
