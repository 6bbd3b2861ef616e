#include "analysis/kernels/kernel_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/kernels/memory_check.h"
#include "analysis/kernels/regression/power_timing.h"
#include "analysis/kernels/regression/replay_scale.h"

namespace jouleprof::analysis {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr std::size_t kMostColumns = 160;
constexpr double kLeastShare = 2e-4;       // of the busy time, for a column of its own
constexpr double kLeastOverlapped = 0.01;  // of its busy time, for a column of overlapped time
constexpr std::size_t kMostOverlapped = 40;
// Widths of the priors, of the mean busy power: of a signature's power, of the difference of a
// variant from its signature, of the difference while other launches run.
constexpr double kPriorWidth = 0.5;
constexpr double kVariantWidth = 0.2;
constexpr double kOverlappedWidth = 0.5;
constexpr int kReplayRounds = 2;
constexpr int kBoundRounds = 4;
constexpr double kNegligible = 1e-6;     // watts
constexpr double kIdleBetweenSigma = 4;  // watts
constexpr double kModelError = 0.035;    // of a signature's energy
// Of its energy in overlapped time, where power depends on the other kernels: the energies of
// ranges of one recording differed by up to 6 % with other partners (docs/validation.md).
constexpr double kOverlappedError = 0.05;
constexpr double kHeadroom = 1.3;         // times the highest observed power, or the board's limit
constexpr double kAboveMean = 3;          // times the mean busy power, where no limit is known
constexpr double kUnresolved = 0.5;       // of the energy, as a 95 % half-width
constexpr double kAnticorrelated = -0.3;  // correlation of errors within a group
constexpr double kNormal95 = 1.96;
constexpr double kWider = 1.25;  // the interval without earlier runs: rests on them

void mark_reruns(const ActivityTable& table, PowerRows& rows) {
  for (PowerRow& row : rows.rows) {
    row.in_rerun = table.replay_time.holds(table.time.host_of((row.begin + row.end) / 2));
  }
}

}  // namespace

void KernelModel::choose_columns() {
  const auto& classes = table_->classes;
  std::vector<std::uint32_t> order(classes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return classes[a].busy > classes[b].busy; });
  const auto pooled = std::stable_partition(order.begin(), order.end(), [&](std::uint32_t k) {
    return classes[k].whole_busy >= kLeastShare * table_->whole_busy;
  });
  own_columns_ = std::min(kMostColumns, static_cast<std::size_t>(pooled - order.begin()));
  column_of_.assign(classes.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    column_of_[order[i]] = static_cast<std::uint32_t>(std::min(i, own_columns_));
  }
  for (const auto& variant : table_->variants) {
    const bool own = column_of_[variant.kernel_class] < own_columns_;
    column_of_.push_back(
        own ? static_cast<std::uint32_t>(column_of_.size() - classes.size() + own_columns_ + 1)
            : model::kNone);
  }
  // Power may differ in overlapped time: the longest such times have a column each.
  std::vector<std::uint32_t> overlapped;
  for (const std::uint32_t k : order) {
    if (classes[k].whole_overlapped > kLeastOverlapped * classes[k].whole_busy)
      overlapped.push_back(k);
  }
  std::stable_sort(overlapped.begin(), overlapped.end(), [&](std::uint32_t a, std::uint32_t b) {
    return classes[a].whole_overlapped > classes[b].whole_overlapped;
  });
  overlapped_columns_ = std::min(overlapped.size(), kMostOverlapped);
  const std::size_t first = own_columns_ + 1 + table_->variants.size();
  column_of_.resize(table_->overlapped(classes.size()), model::kNone);
  for (std::size_t i = 0; i < overlapped.size(); ++i) {
    column_of_[table_->overlapped(overlapped[i])] =
        static_cast<std::uint32_t>(first + std::min(i, kMostOverlapped - 1));
  }
  // Columns after the signatures' own: pooled signatures, variants, overlapped time, isolated
  // re-runs, idle between launches.
  columns_ = first + overlapped_columns_ + 2;
}

std::optional<KernelModel> KernelModel::fit(const ActivityTable& table,
                                            std::span<const ObservedPower> observed,
                                            const IdleHint& idle, double limit_watts,
                                            double time_constant, double clock_variation,
                                            std::vector<KnownKernel> known,
                                            std::span<const DeviatingKernel> deviating) {
  if (table.empty() || observed.empty()) return std::nullopt;
  KernelModel model(table);
  model.choose_columns();
  const SensorTiming timing = fit_timing(table, observed, time_constant, clock_variation);
  PowerRows rows = power_rows(table, model.column_of_, model.columns_, observed, timing);
  if (rows.rows.empty()) return std::nullopt;
  mark_reruns(table, rows);
  model.deviating_.assign(deviating.begin(), deviating.end());

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
      if (term.column <= model.own_columns_) busy += length * term.share;
    }
  }
  const double above = std::max(joules - idle.watts * seconds, 0.0);
  const double mean_busy = busy > 1e-6 ? above / busy : 0.0;
  // Sensors average over short bursts, so a kernel may draw more than the highest observed power.
  const double most =
      std::max({kHeadroom * highest - idle.watts, kHeadroom * limit_watts - idle.watts,
                limit_watts > 0 ? 0.0 : kAboveMean * mean_busy, 1.0});
  std::vector<PowerPrior> priors;
  priors.push_back({idle.watts, idle.sigma, 0, highest});
  for (std::size_t k = 0; k <= model.own_columns_; ++k) {
    priors.push_back({std::min(mean_busy, most), std::max(kPriorWidth * mean_busy, 10.0), 0, most});
  }
  for (std::size_t v = 0; v < table.variants.size(); ++v) {
    priors.push_back({0, std::max(kVariantWidth * mean_busy, 4.0), -most, most});
  }
  for (std::size_t k = 0; k < model.overlapped_columns_; ++k) {
    priors.push_back({0, std::max(kOverlappedWidth * mean_busy, 10.0), -most, most});
  }
  priors.push_back(kReplayScale);
  priors.push_back({0, kIdleBetweenSigma, 0, most});
  SensorTiming other = timing;
  other.time_constant += other.time_constant_sigma;
  PowerRows others;
  const PowerRows* also = nullptr;
  if (other.time_constant_sigma > 0) {
    others = power_rows(table, model.column_of_, model.columns_, observed, other);
    also = &others;
  }
  model.solve(rows, priors, also);
  for (int round = 0; round < kReplayRounds && !table.replays.empty(); ++round) {
    const auto column = static_cast<std::uint32_t>(model.columns_ - 2);
    const VectorXd watts = model.solution_.watts;
    set_replay_scale(rows, table.replays, column, watts);
    set_replay_scale(others, table.replays, column, watts);
    model.solve(rows, priors, also);
  }
  model.clock_variation_ = clock_variation;
  model.solve_with_known(rows, priors, also, std::move(known));
  return model;
}

void KernelModel::solve(const PowerRows& rows, std::vector<PowerPrior>& priors,
                        const PowerRows* others, std::span<const KnownPower> known) {
  // Columns that add to that of a signature: those of its variants and of its overlapped time.
  std::vector<std::pair<Index, Index>> added;
  const auto add = [&](std::size_t id, std::size_t kernel_class) {
    if (column_of_[id] == model::kNone) return;
    added.emplace_back(1 + Index{column_of_[id]}, 1 + Index{column_of_[kernel_class]});
  };
  const std::size_t classes = table_->classes.size();
  for (std::size_t v = 0; v < table_->variants.size(); ++v) {
    add(classes + v, table_->variants[v].kernel_class);
  }
  for (std::size_t k = 0; k < classes; ++k) add(table_->overlapped(k), k);
  for (int round = 0; round < kBoundRounds; ++round) {
    solution_ = solve_power(rows, priors, others, known);
    std::map<Index, double> lowest;  // the pooled column of overlapped time adds to several
    for (const auto& [column, of] : added) {
      const double bound = -solution_.watts[of];
      const auto [at, is_new] = lowest.try_emplace(column, bound);
      if (!is_new) at->second = std::max(at->second, bound);
    }
    bool inside = true;
    for (const auto& [column, bound] : lowest) {
      inside = inside && solution_.watts[column] >= bound - kNegligible;
      priors[static_cast<std::size_t>(column)].lowest = bound;
    }
    if (inside) return;
  }
}

// What the readings say alone comes first: what contradicts them is left out.
void KernelModel::solve_with_known(const PowerRows& rows, std::vector<PowerPrior>& priors,
                                   const PowerRows* others, std::vector<KnownKernel> known) {
  std::erase_if(known, [&](const KnownKernel& k) { return is_pooled(k.kernel_class); });
  if (known.empty()) return;
  std::vector<KnownPower> powers;
  for (const KnownKernel& k : known) powers.push_back(power_of(k));
  const auto wrong =
      analysis::contradicted(solution_, powers, std::hypot(kModelError, clock_variation_));
  powers.clear();
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (std::binary_search(wrong.begin(), wrong.end(), i)) {
      contradicted_.push_back(known[i]);
    } else {
      powers.push_back(power_of(known[i]));
      known_.push_back(known[i]);
    }
  }
  if (powers.empty()) return;
  own_ = std::move(solution_);
  solve(rows, priors, others, powers);
}

KnownPower KernelModel::power_of(const KnownKernel& known) const {
  KnownPower power{{1 + std::size_t{column_of_[known.kernel_class]}}, known.watts, known.sigma};
  if (known.variant != model::kNone) {
    const auto column = column_of_[table_->classes.size() + known.variant];
    if (column != model::kNone) power.columns.push_back(1 + std::size_t{column});
  }
  return power;
}

double KernelModel::idle_sigma() const {
  VectorXd factor = VectorXd::Zero(solution_.watts.size());
  factor[0] = 1;
  return std::sqrt(solution_.variance(factor));
}

std::vector<KernelModel::Use> KernelModel::all_of(std::uint32_t kernel_class) const {
  const auto& c = table_->classes[kernel_class];
  std::vector<Use> uses;
  double busy = 0;
  for (const auto& v : table_->variants) busy += v.kernel_class == kernel_class ? v.busy : 0.0;
  if (busy <= 0) return {{kernel_class, model::kNone, c.busy, c.overlapped, c.idle_between}};
  for (std::uint32_t v = 0; v < table_->variants.size(); ++v) {
    const auto& variant = table_->variants[v];
    if (variant.kernel_class != kernel_class || variant.busy <= 0) continue;
    const double part = variant.busy / busy;
    uses.push_back({kernel_class, v, part * c.busy, part * c.overlapped, part * c.idle_between});
  }
  return uses;
}

// Calls add(index into the solution's watts, seconds).
template <class Add>
void KernelModel::each_factor(const Use& use, Add add) const {
  const auto put = [&](std::size_t id, double seconds) {
    if (column_of_[id] != model::kNone) add(static_cast<Index>(1 + column_of_[id]), seconds);
  };
  put(use.kernel_class, use.busy);
  if (use.variant != model::kNone) put(table_->classes.size() + use.variant, use.busy);
  put(table_->overlapped(use.kernel_class), use.overlapped);
}

double KernelModel::joules_of(const Use& use) const {
  double joules = 0;
  each_factor(use, [&](Index i, double seconds) { joules += solution_.watts[i] * seconds; });
  return joules;
}

double KernelModel::joules_of(const ActivityTable::Entry& entry) const {
  const std::uint32_t column = column_of_[entry.kernel_class];
  return column == model::kNone ? 0 : solution_.watts[1 + static_cast<Index>(column)] * entry.busy;
}

VectorXd KernelModel::factor_of(std::span<const Use> uses) const {
  VectorXd factor = VectorXd::Zero(solution_.watts.size());
  for (const Use& use : uses) {
    each_factor(use, [&](Index i, double seconds) { factor[i] += seconds; });
  }
  return factor;
}

KernelModel::Estimate KernelModel::energy_of(std::span<const Use> uses) const {
  return energy_by(solution_, uses);
}

KernelModel::Estimate KernelModel::own_energy_of(std::span<const Use> uses) const {
  return energy_by(own_ ? *own_ : solution_, uses);
}

bool KernelModel::rests_on_known(std::span<const Use> uses) const {
  return own_ && energy_by(*own_, uses).sigma > kWider * energy_of(uses).sigma;
}

std::size_t KernelModel::own_column(const Use& use) const {
  std::uint32_t column = column_of_[use.kernel_class];
  if (use.variant != model::kNone) {
    const auto variant = column_of_[table_->classes.size() + use.variant];
    if (variant != model::kNone) column = variant;
  }
  return 1 + std::size_t{column};
}

double KernelModel::deviation_of(const Use& use) const {
  double most = 0;
  for (const DeviatingKernel& d : deviating_) {
    const bool is_of = d.kernel_class == use.kernel_class && d.variant == use.variant;
    if (is_of) most = std::max(most, std::abs(d.ratio));
  }
  return most;
}

KernelModel::Estimate KernelModel::energy_by(const PowerSolution& solution,
                                             std::span<const Use> uses) const {
  const VectorXd factor = factor_of(uses);
  double own = 0;
  for (const Use& use : uses) {
    double joules = 0;
    each_factor(use, [&](Index i, double seconds) { joules += solution.watts[i] * seconds; });
    own += std::pow(kModelError * joules, 2);
    own += std::pow(deviation_of(use) * joules / kNormal95, 2);
    if (use.busy <= 0) continue;
    own += std::pow(kOverlappedError * joules * use.overlapped / use.busy, 2);
    // Where the kernel also ran in isolation, the program's idle power between launches matters
    // less.
    own += std::pow(kIdleBetweenSigma * use.idle_between / use.busy *
                        solution.shift_by_program(factor_of({&use, 1}), own_column(use)),
                    2);
  }
  own += std::pow(solution.maximum_shift(factor, clock_variation_), 2);
  own += std::pow(factor.dot(solution.alternative_shift), 2);
  const double variance = solution.variance(factor) + own;
  return {factor.dot(solution.watts), std::sqrt(std::max(variance, 0.0))};
}

bool KernelModel::is_pooled(std::uint32_t kernel_class) const {
  return column_of_[kernel_class] >= own_columns_;
}

std::vector<std::vector<std::uint32_t>> KernelModel::groups() const {
  std::vector<std::uint32_t> open;
  std::vector<VectorXd> factors;
  for (std::uint32_t k = 0; k < table_->classes.size(); ++k) {
    if (is_pooled(k)) continue;
    const auto uses = all_of(k);
    const Estimate e = energy_of(uses);
    if (1.96 * e.sigma <= kUnresolved * e.joules) continue;
    open.push_back(k);
    factors.push_back(factor_of(uses));
  }
  struct Pair {
    double correlation;
    std::size_t a, b;
  };
  std::vector<Pair> pairs;
  const auto& v = solution_.covariance;
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (std::size_t j = i + 1; j < open.size(); ++j) {
      const VectorXd &a = factors[i], &b = factors[j];
      const double r = a.dot(v * b) / std::sqrt(std::max(a.dot(v * a) * b.dot(v * b), 1e-300));
      if (r < kAnticorrelated) pairs.push_back({r, i, j});
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
