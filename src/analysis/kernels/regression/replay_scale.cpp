#include "analysis/kernels/regression/replay_scale.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace jouleprof::analysis {
namespace {

// The share of [begin, end] within re-runs, which are few and may be of several processes.
double part_in(std::span<const ActivityTable::Replay> replays, double begin, double end) {
  double most = 0;
  for (const auto& replay : replays) {
    most = std::max(most, std::min(end, replay.end) - std::max(begin, replay.begin));
  }
  return end > begin ? most / (end - begin) : 0;
}

}  // namespace

void set_replay_scale(PowerRows& rows, std::span<const ActivityTable::Replay> replays,
                      std::uint32_t column, const Eigen::VectorXd& watts) {
  std::vector<PowerRows::Term> terms;
  terms.reserve(rows.terms.size() + rows.rows.size());
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    first.push_back(terms.size());
    double above = 0;
    for (const auto& term : rows.of(i)) {
      if (term.column == column) continue;
      above += term.share * watts[1 + static_cast<Eigen::Index>(term.column)];
      terms.push_back(term);
    }
    const double part = part_in(replays, rows.rows[i].begin, rows.rows[i].end);
    if (part <= 0) continue;
    const auto own = terms.begin() + static_cast<std::ptrdiff_t>(first.back());
    const auto place = std::partition_point(
        own, terms.end(), [&](const PowerRows::Term& term) { return term.column < column; });
    terms.insert(place, {column, static_cast<float>(part * above / 100)});
  }
  for (std::size_t i = 0; i < rows.rows.size(); ++i) rows.rows[i].first = first[i];
  rows.terms = std::move(terms);
}

}  // namespace jouleprof::analysis
