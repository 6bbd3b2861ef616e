#include "analysis/compare/pairs.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

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

namespace {

using Key = std::pair<std::string, std::string>;  // name and detail

const FigureRow* find(const RunFigures& run, const Key& key) {
  for (const auto& row : run.rows) {
    if (row.name == key.first && row.detail == key.second) return &row;
  }
  return nullptr;
}

bool any_has(const std::vector<RunFigures>& runs, const Key& key) {
  return std::any_of(runs.begin(), runs.end(),
                     [&](const RunFigures& run) { return find(run, key) != nullptr; });
}

// A layer's detail is "Type [shapes]". The place where its shapes begin; npos: it is no layer's.
std::size_t shapes_in(const std::string& detail) { return detail.find(" ["); }

void pair_replaced(RowPairs& out) {
  std::map<Key, std::vector<const UnmatchedRow*>> places;
  for (const auto& each : out.unmatched) {
    const std::size_t shapes = shapes_in(each.row.detail);
    if (shapes == std::string::npos) continue;
    places[{each.row.name, each.row.detail.substr(shapes)}].push_back(&each);
  }
  std::set<Key> paired;
  for (const auto& [place, sides] : places) {
    if (sides.size() != 2 || sides[0]->before == sides[1]->before) continue;
    const FigureRow& before = (sides[0]->before ? sides[0] : sides[1])->row;
    const FigureRow& after = (sides[0]->before ? sides[1] : sides[0])->row;
    const std::string type = before.detail.substr(0, shapes_in(before.detail));
    out.pairs.push_back({before.name, type + " -> " + after.detail, before.detail, after.detail});
    paired.insert({{before.name, before.detail}, {after.name, after.detail}});
  }
  const auto is_paired = [&](const UnmatchedRow& each) {
    return paired.count({each.row.name, each.row.detail}) > 0;
  };
  out.unmatched.erase(std::remove_if(out.unmatched.begin(), out.unmatched.end(), is_paired),
                      out.unmatched.end());
}

}  // namespace

Figure RowPair::energy_in(const RunFigures& run) const {
  const FigureRow* found = find(run, {name, detail_before});
  if (!found) found = find(run, {name, detail_after});
  return found ? found->energy : Figure{{}, 0, {}, false, "absent"};
}

RowPairs pair_rows(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after) {
  RowPairs out;
  std::set<Key> seen;
  for (const auto* side : {&before, &after}) {
    const auto& other = side == &before ? after : before;
    for (const auto& run : *side) {
      for (const auto& row : run.rows) {
        const Key key{row.name, row.detail};
        if (!seen.insert(key).second) continue;
        if (any_has(other, key)) {
          out.pairs.push_back({row.name, row.detail, row.detail, row.detail});
        } else {
          out.unmatched.push_back({side == &before, row});
        }
      }
    }
  }
  pair_replaced(out);
  return out;
}

}  // namespace jouleprof::analysis
