#include "analysis/kernel_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/power_timing.h"

namespace jouleprof::analysis {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr std::size_t kMostColumns = 160;
constexpr double kLeastShare = 2e-4;   // of the busy time, for a column of its own
constexpr double kPriorWidth = 0.5;    // of the mean busy power
constexpr double kGapSigma = 4;        // watts
constexpr double kModelError = 0.035;  // of a class's energy
constexpr double kHeadroom = 1.3;      // above the highest power seen, or the board's limit
constexpr double kAboveMean = 3;       // times the mean busy power, where no limit is known
constexpr double kUnresolved = 0.5;    // of the energy, as a 95 % half-width
constexpr double kAgainst = -0.3;      // correlation of errors within a group

}  // namespace

void KernelModel::choose_columns() {
  const auto& classes = table_->classes;
  std::vector<std::uint32_t> order(classes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return classes[a].busy > classes[b].busy; });
  column_of_.assign(classes.size(), 0);
  own_columns_ = 0;
  for (const std::uint32_t k : order) {
    if (own_columns_ == kMostColumns || classes[k].whole_busy < kLeastShare * table_->whole_busy)
      break;
    column_of_[k] = static_cast<std::uint32_t>(own_columns_++);
  }
  for (std::size_t i = own_columns_; i < order.size(); ++i) {
    column_of_[order[i]] = static_cast<std::uint32_t>(own_columns_);
  }
  columns_ = own_columns_ + 2;  // those without one of their own; time between launches
}

std::optional<KernelModel> KernelModel::fit(const ActivityTable& table,
                                            std::span<const SeenPower> seen, const IdleHint& idle,
                                            double limit_watts, double rise, double sway) {
  if (table.empty() || seen.empty()) return std::nullopt;
  KernelModel model(table);
  model.choose_columns();
  model.timing_ = fit_timing(table, seen, rise);
  const PowerRows rows = power_rows(table, model.column_of_, model.columns_, seen, model.timing_);
  if (rows.rows.empty()) return std::nullopt;

  double seconds = 0;
  double joules = 0;
  double busy = 0;
  double highest = 0;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const double length = rows.rows[i].end - rows.rows[i].begin;
    seconds += length;
    joules += length * rows.rows[i].watts;
    highest = std::max(highest, rows.rows[i].watts);
    for (const auto& term : rows.of(i)) {
      if (term.column + 1 < model.columns_) busy += length * term.share;
    }
  }
  const double above = std::max(joules - idle.watts * seconds, 0.0);
  model.mean_busy_ = busy > 1e-6 ? above / busy : 0.0;
  // Sensors smear short bursts, so that a kernel may draw more than the highest power seen.
  const double most =
      std::max({kHeadroom * highest - idle.watts, kHeadroom * limit_watts - idle.watts,
                limit_watts > 0 ? 0.0 : kAboveMean * model.mean_busy_, 1.0});
  std::vector<PowerPrior> priors;
  priors.push_back({idle.watts, idle.sigma, 0, highest});
  for (std::size_t k = 0; k + 1 < model.columns_; ++k) {
    priors.push_back({std::min(model.mean_busy_, most),
                      std::max(kPriorWidth * model.mean_busy_, 10.0), 0, most});
  }
  priors.push_back({0, kGapSigma, 0, most});
  model.solution_ = solve_power(rows, priors);
  model.sway_ = sway;
  return model;
}

double KernelModel::idle_sigma() const {
  VectorXd factor = VectorXd::Zero(solution_.watts.size());
  factor[0] = 1;
  return std::sqrt(solution_.variance(factor));
}

KernelModel::Use KernelModel::all_of(std::uint32_t kernel_class) const {
  const auto& c = table_->classes[kernel_class];
  return {kernel_class, c.busy, c.gap};
}

KernelModel::Estimate KernelModel::energy_of(std::span<const Use> uses) const {
  VectorXd factor = VectorXd::Zero(solution_.watts.size());
  double own = 0;
  for (const Use& use : uses) {
    const auto at = static_cast<Index>(1 + column_of_[use.kernel_class]);
    factor[at] += use.busy;
    own += std::pow(kModelError * use.busy * solution_.watts[at], 2);
    own += std::pow(kGapSigma * use.gap, 2);
  }
  own += std::pow(solution_.sway(factor, sway_), 2);
  const double variance = solution_.variance(factor) + own;
  return {factor.dot(solution_.watts), std::sqrt(std::max(variance, 0.0))};
}

bool KernelModel::is_pooled(std::uint32_t kernel_class) const {
  return column_of_[kernel_class] >= own_columns_;
}

std::vector<std::vector<std::uint32_t>> KernelModel::groups() const {
  std::vector<std::uint32_t> open;
  for (std::uint32_t k = 0; k < table_->classes.size(); ++k) {
    if (is_pooled(k)) continue;
    const Use use = all_of(k);
    const Estimate e = energy_of({&use, 1});
    if (1.96 * e.sigma > kUnresolved * e.joules) open.push_back(k);
  }
  struct Pair {
    double correlation;
    std::size_t a, b;
  };
  std::vector<Pair> pairs;
  const auto& v = solution_.covariance;
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (std::size_t j = i + 1; j < open.size(); ++j) {
      const auto a = static_cast<Index>(1 + column_of_[open[i]]);
      const auto b = static_cast<Index>(1 + column_of_[open[j]]);
      const double r = v(a, b) / std::sqrt(std::max(v(a, a) * v(b, b), 1e-300));
      if (r < kAgainst) pairs.push_back({r, i, j});
    }
  }
  std::sort(pairs.begin(), pairs.end(),
            [](const Pair& x, const Pair& y) { return x.correlation < y.correlation; });
  std::vector<std::size_t> root(open.size());
  std::iota(root.begin(), root.end(), 0U);
  const auto find = [&](std::size_t i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  };
  for (const Pair& p : pairs) root[find(p.a)] = find(p.b);
  std::vector<std::vector<std::uint32_t>> by_root(open.size());
  for (std::size_t i = 0; i < open.size(); ++i) by_root[find(i)].push_back(open[i]);
  std::erase_if(by_root, [](const auto& group) { return group.size() < 2; });
  for (auto& group : by_root) {
    std::sort(group.begin(), group.end(), [&](std::uint32_t a, std::uint32_t b) {
      return table_->classes[a].busy > table_->classes[b].busy;
    });
  }
  return by_root;
}

}  // namespace jouleprof::analysis
