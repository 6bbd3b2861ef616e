#include "analysis/compare/blocks.h"

#include <algorithm>
#include <numeric>

namespace jouleprof::analysis {
namespace {

constexpr Duration kLongestPause = std::chrono::hours{1};

struct Placed {
  const RunFigures* run;
  bool is_before;
  std::size_t place;
};

bool is_joined(const Placed& a, const Placed& b) {
  return a.is_before == b.is_before && a.run->host == b.run->host &&
         a.run->boot_id == b.run->boot_id &&
         *b.run->started - (*a.run->started + a.run->length) <= kLongestPause;
}

std::vector<std::size_t> all_of(const std::vector<RunFigures>& runs) {
  std::vector<std::size_t> places(runs.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  return places;
}

}  // namespace

Blocks blocks_of(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after) {
  std::vector<Placed> placed;
  for (const auto* side : {&before, &after}) {
    for (std::size_t i = 0; i < side->size(); ++i) {
      placed.push_back({&(*side)[i], side == &before, i});
    }
  }
  const auto is_timed = [](const Placed& p) { return p.run->started.has_value(); };
  if (!std::all_of(placed.begin(), placed.end(), is_timed)) {
    return {{all_of(before)}, {all_of(after)}};
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return *a.run->started < *b.run->started;
  });
  Blocks blocks;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    auto& list = placed[i].is_before ? blocks.before : blocks.after;
    if (i == 0 || !is_joined(placed[i - 1], placed[i])) list.emplace_back();
    list.back().push_back(placed[i].place);
  }
  return blocks;
}

std::vector<double> block_means(const std::vector<std::vector<std::size_t>>& blocks,
                                const std::vector<double>& values) {
  std::vector<double> means;
  for (const auto& block : blocks) {
    double sum = 0;
    for (const std::size_t place : block) sum += values.at(place);
    means.push_back(sum / static_cast<double>(block.size()));
  }
  return means;
}

}  // namespace jouleprof::analysis
