#include "analysis/kernels/kernel_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "analysis/kernels/regression/power_regression.h"
#include "analysis/kernels/regression/power_timing.h"
#include "analysis/kernels/remembered_kernels.h"
#include "analysis/timeline/sensors/error_model.h"

namespace jouleprof::analysis {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr std::size_t kMostColumns = 2000;
constexpr double kLeastShare = 2e-4;       // of the busy time, for a column of its own
constexpr double kLeastOverlapped = 0.01;  // of its busy time, for a column of overlapped time
constexpr std::size_t kMostOverlapped = 200;
constexpr int kScaleRounds = 2;
constexpr int kBoundRounds = 4;
constexpr double kNegligible = 1e-6;             // watts
constexpr double kClock = 0.25;                  // seconds that a clock may last
constexpr std::size_t kMostDoubted = 600;        // columns
constexpr std::size_t kManyEntries = 5'000'000;  // entries of bins: fewer orders, in seconds
constexpr std::size_t kFewOrders = 4;

void mark_reruns(const ActivityTable& table, PowerRows& rows) {
  for (PowerRow& row : rows.rows) {
    row.in_rerun = table.replay_time.holds(table.time.host_of((row.begin + row.end) / 2));
  }
}

// The share of a row within re-runs, which are few and may be of several processes.
double part_in(std::span<const ActivityTable::Replay> replays, const PowerRow& row) {
  double most = 0;
  for (const auto& replay : replays) {
    most = std::max(most, std::min(row.end, replay.end) - std::max(row.begin, replay.begin));
  }
  return row.end > row.begin ? std::max(most, 0.0) / (row.end - row.begin) : 0;
}

// Between two loops a kernel runs for the first time, is timed, and finds the clock of a program at
// its limit: until then it draws other power than in its loop. Such time counts less.
void doubt_trials(const ActivityTable& table, double idle_watts, PowerRows& rows) {
  constexpr double kApart = 0.1;  // relative; 10 to 13 % were seen (H200, 30 Nov)
  for (PowerRow& row : rows.rows) {
    if (!row.in_rerun) continue;
    row.doubt = kApart * (1 - part_in(table.replays, row)) * std::max(row.watts - idle_watts, 0.0);
  }
}

// By how much more power than usual the clocks of a row mean, relative to it; 0 in re-runs, whose
// loops know their own clocks.
double course_in(const PowerRow& row, const SmClocks& clocks, double mean) {
  return row.in_rerun ? 0 : clocks.power_ratio(row.begin, row.end) / mean - 1;
}
// The mean of the clocks' effect over the program's work. `columns`: of signatures.
double mean_course(const PowerRows& rows, const SmClocks& clocks, std::size_t columns) {
  double sum = 0;
  double busy = 0;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const PowerRow& row = rows.rows[i];
    if (row.in_rerun) continue;
    double share = 0;
    for (const auto& term : rows.of(i)) share += term.column < columns ? term.share : 0;
    const double seconds = share * (row.end - row.begin);
    sum += seconds * clocks.power_ratio(row.begin, row.end);
    busy += seconds;
  }
  return busy > 0 ? sum / busy : 1;
}

}  // namespace

void KernelModel::choose_columns() {
  const auto& classes = table_->classes;
  std::vector<std::uint32_t> order(classes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(
      order, [&](std::uint32_t a, std::uint32_t b) { return classes[a].busy > classes[b].busy; });
  const auto pooled = std::stable_partition(order.begin(), order.end(), [&](std::uint32_t k) {
    return classes[k].whole_busy >= kLeastShare * table_->whole_busy;
  });
  const auto long_enough = static_cast<std::size_t>(pooled - order.begin());
  own_columns_ = std::min(kMostColumns, long_enough);
  above_cap_.assign(classes.size(), false);
  for (std::size_t i = own_columns_; i < long_enough; ++i) above_cap_[order[i]] = true;
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
  std::ranges::stable_sort(overlapped, [&](std::uint32_t a, std::uint32_t b) {
    return classes[a].whole_overlapped > classes[b].whole_overlapped;
  });
  overlapped_columns_ = std::min(overlapped.size(), kMostOverlapped);
  const std::size_t first = own_columns_ + 1 + table_->variants.size();
  column_of_.resize(table_->overlapped(classes.size()), model::kNone);
  shares_overlapped_.assign(classes.size(), false);
  const bool too_many = overlapped.size() > kMostOverlapped;
  for (std::size_t i = 0; i < overlapped.size(); ++i) {
    column_of_[table_->overlapped(overlapped[i])] =
        static_cast<std::uint32_t>(first + std::min(i, kMostOverlapped - 1));
    shares_overlapped_[overlapped[i]] = too_many && i + 1 >= kMostOverlapped;
  }
  // Columns after the signatures' own: pooled signatures, variants, overlapped time, changing
  // clocks, isolated re-runs, idle between launches.
  columns_ = first + overlapped_columns_ + 3;
}

std::optional<KernelModel> KernelModel::fit(const ActivityTable& table,
                                            std::span<const ObservedPower> observed,
                                            const IdleHint& idle, double limit_watts,
                                            double time_constant, const SmClocks& clocks,
                                            std::vector<KnownKernel> known,
                                            const ReplayCheck& reruns) {
  if (table.empty() || observed.empty()) return std::nullopt;
  KernelModel model(table);
  model.choose_columns();
  const auto variation = clocks.power_variation();
  const PlausibleTiming plausible = fit_timing(table, observed, time_constant, variation.all());
  const SensorTiming& timing = plausible.best;
  const auto rows_with = [&](const SensorTiming& with,
                             std::optional<std::size_t> order = std::nullopt) {
    PowerRows made = power_rows(table, model.column_of_, model.columns_, observed, with, order);
    mark_reruns(table, made);
    if (clocks.held_long()) doubt_trials(table, idle.watts, made);
    model.scale_loops(reruns.loops, made);
    return made;
  };
  PowerRows rows = rows_with(timing);
  if (rows.rows.empty()) return std::nullopt;
  model.deviating_ = reruns.deviating;

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
  const double most = std::max({kErrors.headroom * highest - idle.watts,
                                kErrors.headroom * limit_watts - idle.watts,
                                limit_watts > 0 ? 0.0 : kErrors.above_mean * mean_busy, 1.0});
  model.highest_ = most;
  const auto dropped = static_cast<double>(table.dropped);
  const auto recorded = static_cast<double>(table.launches);
  model.dropped_share_ = dropped > 0 ? dropped / (dropped + recorded) : 0.0;
  model.held_sigma_ = idle.held_sigma;
  model.own_sigma_ = std::max(kErrors.prior_width * mean_busy, 10.0);
  model.overlapped_sigma_ = std::max(kErrors.overlapped_width * mean_busy, 10.0);
  std::vector<PowerPrior> priors;
  priors.push_back({idle.watts, idle.sigma, 0, highest});
  for (std::size_t k = 0; k <= model.own_columns_; ++k) {
    priors.push_back({std::min(mean_busy, most), model.own_sigma_, 0, most});
  }
  for (std::size_t v = 0; v < table.variants.size(); ++v) {
    priors.push_back({0, std::max(kErrors.variant_width * mean_busy, 4.0), -most, most});
  }
  for (std::size_t k = 0; k < model.overlapped_columns_; ++k) {
    priors.push_back({0, model.overlapped_sigma_, -most, most});
  }
  priors.push_back(kClockScale);
  priors.push_back(kReplayScale);
  priors.push_back({0, kErrors.idle_between, 0, most});
  std::vector<PowerRows> others;
  if (model.columns_ <= kMostDoubted) {
    // Bins don't say in which order launches lie in them, which differs from kernel to kernel where
    // these are shorter than a bin.
    const bool sure = plausible.others.empty();
    const std::size_t count = sure && table.entries.size() > kManyEntries ? kFewOrders : kTimings;
    for (std::size_t i = 0; i < count; ++i) {
      others.push_back(rows_with(sure ? timing : plausible.others[i], i));
    }
  } else {
    for (const SensorTiming& other : plausible.others) others.push_back(rows_with(other));
  }
  // Where only the time constant is in doubt, one step says how much.
  SensorTiming later = timing;
  later.time_constant += later.time_constant_sigma;
  PowerRows with_later;
  const PowerRows* also = nullptr;
  if (plausible.others.empty() && later.time_constant_sigma > 0) {
    with_later = rows_with(later);
    also = &with_later;
  }
  model.solve(rows, priors, also);
  const bool is_scaled = !table.replays.empty() || clocks.knows_course();
  const double mean = is_scaled ? mean_course(rows, clocks, model.own_columns_) : 1;
  for (int round = 0; is_scaled && round < kScaleRounds; ++round) {
    const VectorXd watts = model.solution_.watts;
    const auto set = [&](PowerRows& to) {
      set_scale(
          to, [&](const PowerRow& row) { return course_in(row, clocks, mean); },
          static_cast<std::uint32_t>(model.columns_ - 3), watts);
      set_scale(
          to, [&](const PowerRow& row) { return part_in(table.replays, row); },
          static_cast<std::uint32_t>(model.columns_ - 2), watts);
    };
    set(rows);
    set(with_later);
    for (PowerRows& other : others) set(other);
    model.solve(rows, priors, also);
  }
  model.clocks_ = variation;
  if (clocks.knows_course()) {
    // Power follows the clock by no more than the readings of both allow.
    const auto k = static_cast<Index>(model.columns_ - 2);
    const double follows = (std::abs(model.solution_.watts[k]) +
                            kErrors.normal95 * std::sqrt(model.solution_.covariance(k, k))) /
                           100;
    model.clocks_.random *= std::min(follows, 1.0);
    model.clocks_.systematic *= std::min(follows, 1.0);
  }
  model.solve_with_known(rows, priors, also, others, std::move(known));
  // Power between launches that idle time cannot draw is that of launches without a record, in all
  // of that time at most.
  model.runs_between_ = model.idle_between_watts() > kErrors.clearly_busy * kErrors.idle_between;
  if (model.runs_between_) {
    const double between = table.idle_between / (table.busy + table.idle_between);
    model.dropped_share_ = std::max(model.dropped_share_, between);
  }
  const double left = std::min(model.solution_.counter_sigma, model.solution_.sample_sigma);
  const double mean_active = seconds > 0 ? above / seconds : 0.0;
  model.explains_ = model.solution_.explained >= kErrors.little_explained ||
                    left <= kErrors.far_off * mean_active;
  return model;
}

// From a kernel's watts in its loops to those of the program. In the time of re-runs a kernel runs
// for its loops only, so that what the sensors show of it later is scaled, too.
void KernelModel::scale_loops(std::span<const LoopPower> loops, PowerRows& rows) const {
  std::multimap<std::uint32_t, const LoopPower*> by_column;
  for (const LoopPower& loop : loops) {
    by_column.emplace(column_of_[loop.kernel_class], &loop);
    if (loop.variant == model::kNone) continue;
    const std::uint32_t column = column_of_[table_->classes.size() + loop.variant];
    if (column != model::kNone) by_column.emplace(column, &loop);
  }
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    if (!rows.rows[i].in_rerun) continue;
    const double at = (rows.rows[i].begin + rows.rows[i].end) / 2;
    const auto away = [at](const auto& of_column) {
      const LoopPower& loop = *of_column.second;
      return std::max({loop.begin - at, at - loop.end, 0.0});
    };
    for (PowerRows::Term& term : rows.of_mutable(i)) {
      const auto [first, last] = by_column.equal_range(term.column);
      const auto nearest = std::min_element(
          first, last, [&](const auto& a, const auto& b) { return away(a) < away(b); });
      if (nearest != last) term.share *= static_cast<float>(nearest->second->factor);
    }
  }
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
    // The pooled column of overlapped time adds to several.
    std::map<Index, std::pair<double, double>> bounds;
    for (const auto& [column, of] : added) {
      const double lowest = -solution_.watts[of];
      const double highest = std::max(highest_ - solution_.watts[of], 0.0);
      const auto [at, is_new] = bounds.try_emplace(column, lowest, highest);
      if (is_new) continue;
      at->second.first = std::max(at->second.first, lowest);
      at->second.second = std::min(at->second.second, highest);
    }
    bool inside = true;
    for (const auto& [column, bound] : bounds) {
      inside = inside && solution_.watts[column] >= bound.first - kNegligible &&
               solution_.watts[column] <= bound.second + kNegligible;
      priors[static_cast<std::size_t>(column)].lowest = bound.first;
      priors[static_cast<std::size_t>(column)].highest = bound.second;
    }
    if (inside) return;
  }
}

// Of the sensors and of idle power.
void KernelModel::add_doubts(PowerSolution& solution, const PowerRows& rows,
                             const std::vector<PowerPrior>& priors,
                             std::span<const PowerRows> others,
                             std::span<const KnownPower> known) const {
  const Eigen::MatrixXd timing =
      kErrors.few_timings * other_solutions(solution, priors, others, known);
  if (columns_ > kMostDoubted) {
    solution.spread = timing;
    return;
  }
  const DriftingIdle drift = drifting_idle(solution, rows, priors, held_sigma_, known);
  solution.spread.resize(solution.watts.size(), timing.cols() + 1);
  solution.spread << timing, drift.shift;
  for (Index k = 0; k < solution.watts.size(); ++k) {
    const double wider = drift.covariance(k, k) - solution.covariance(k, k);
    if (wider > 0 && k > 0) solution.covariance(k, k) += wider;
  }
}

// What the readings say alone comes first: what contradicts them is left out.
void KernelModel::solve_with_known(PowerRows& rows, std::vector<PowerPrior>& priors,
                                   const PowerRows* also, std::span<PowerRows> others,
                                   std::vector<KnownKernel> known) {
  add_doubts(solution_, rows, priors, others, {});
  std::erase_if(known, [&](const KnownKernel& k) { return is_pooled(k.kernel_class); });
  if (known.empty()) return;
  own_ = solution_;
  if (clocks_.all() > 0) {
    for (PowerRows& other : others) doubt_clocks(other);
    doubt_clocks(rows);
    solve(rows, priors, also);
    add_doubts(solution_, rows, priors, others, {});
  }
  std::vector<KnownPower> powers;
  for (const KnownKernel& k : known) powers.push_back(power_of(k));
  const auto wrong =
      analysis::contradicted(solution_, powers, std::hypot(kErrors.kernel_power, clocks_.all()));
  powers.clear();
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (std::ranges::binary_search(wrong, i)) {
      contradicted_.push_back(known[i]);
    } else {
      powers.push_back(power_of(known[i]));
      known_.push_back(known[i]);
    }
  }
  if (powers.empty()) {
    solution_ = *std::exchange(own_, std::nullopt);
    return;
  }
  solve(rows, priors, also, powers);
  add_doubts(solution_, rows, priors, others, powers);
}

// Where clocks change, so does the power of each kernel: one reading says little of the others that
// follow it within the time that a clock lasts. What is known of kernels counts more then.
void KernelModel::doubt_clocks(PowerRows& rows) const {
  for (PowerRow& row : rows.rows) {
    if (row.in_rerun) continue;
    const double active = std::max(row.watts - solution_.watts[0], 0.0);
    const double lasts = std::max(kClock / std::max(row.end - row.begin, 1e-3), 1.0);
    row.doubt = clocks_.all() * active * std::sqrt(lasts);
  }
}

KnownPower KernelModel::power_of(const KnownKernel& known) const {
  KnownPower power{{1 + std::size_t{column_of_[known.kernel_class]}}, known.watts, known.sigma};
  if (known.variant != model::kNone) {
    const auto column = column_of_[table_->classes.size() + known.variant];
    if (column != model::kNone) power.columns.push_back(1 + std::size_t{column});
  }
  return power;
}

// Kernels explain a load in step with the sensor nearly fully, or the timing is wrong.
void KernelModel::set_sampling_error(double ratio) {
  sampling_error_ = ratio;
  explains_ = explains_ && solution_.explained >= kErrors.locked_explained;
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
  return own_ && energy_by(*own_, uses).sigma > kErrors.rests_on_known * energy_of(uses).sigma;
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
    own += std::pow(kErrors.kernel_power * joules, 2);
    own += std::pow(deviation_of(use) * joules / kErrors.normal95, 2);
    // A bound that is active says only that the model is wrong by more than the readings' errors.
    if (is_pooled(use.kernel_class) || bound_of(use.kernel_class))
      own += std::pow(own_sigma_ * use.busy, 2);
    if (shares_overlapped_[use.kernel_class]) {
      own += std::pow(overlapped_sigma_ * use.overlapped, 2);
    }
    if (use.busy <= 0) continue;
    own += std::pow(kErrors.overlapped * joules * use.overlapped / use.busy, 2);
    // Where the kernel also ran in isolation, the program's idle power between launches matters
    // less.
    own += std::pow(kErrors.idle_between * use.idle_between / use.busy *
                        solution.shift_by_program(factor_of({&use, 1}), own_column(use)),
                    2);
  }
  own += std::pow(solution.maximum_shift(factor, clocks_.systematic), 2);
  own += std::pow(solution.random_shift(factor, clocks_.random), 2);
  // What was dropped ran next to what was recorded, which takes its energy; and what samples miss
  // is of the program. Isolated re-runs know of neither.
  own += std::pow(std::hypot(dropped_share_, sampling_error_) *
                      solution.shift_by_all_of_program(factor) / kErrors.normal95,
                  2);
  own += std::pow(excess_ * factor.dot(solution.watts) / kErrors.normal95, 2);
  own += std::pow(factor.dot(solution.alternative_shift), 2);
  const double variance = solution.variance(factor) + own;
  return {factor.dot(solution.watts), std::sqrt(std::max(variance, 0.0))};
}

std::optional<double> KernelModel::bound_of(std::uint32_t kernel_class) const {
  const double watts = solution_.watts[1 + static_cast<Index>(column_of_[kernel_class])];
  if (watts <= kNegligible) return 0;
  if (watts >= highest_ - kNegligible) return highest_;
  return std::nullopt;
}

bool KernelModel::is_pooled(std::uint32_t kernel_class) const {
  return column_of_[kernel_class] >= own_columns_;
}

std::vector<std::vector<std::uint32_t>> KernelModel::groups() const {
  // An energy's factors that are not zero, and how far the other solutions move it.
  struct Sum {
    std::vector<std::pair<Index, double>> of;
    VectorXd moved;
  };
  const PowerSolution& s = solution_;
  const auto covariance = [&](const Sum& a, const Sum& b) {
    double sum = a.moved.dot(b.moved);
    for (const auto& [i, x] : a.of) {
      for (const auto& [j, y] : b.of) sum += x * y * s.covariance(i, j);
    }
    return sum;
  };
  std::vector<std::uint32_t> open;
  std::vector<Sum> sums;
  std::vector<double> own;
  for (std::uint32_t k = 0; k < table_->classes.size(); ++k) {
    if (is_pooled(k)) continue;
    const auto uses = all_of(k);
    const Estimate e = energy_of(uses);
    if (kErrors.normal95 * e.sigma <= kErrors.unresolved * e.joules) continue;
    open.push_back(k);
    Sum& sum = sums.emplace_back();
    const VectorXd factor = factor_of(uses);
    for (Index i = 0; i < factor.size(); ++i) {
      if (factor[i] != 0) sum.of.emplace_back(i, factor[i]);
    }
    sum.moved = VectorXd::Zero(s.spread.cols());
    for (const auto& [i, x] : sum.of) sum.moved += x * s.spread.row(i).transpose();
    own.push_back(covariance(sum, sum));
  }
  struct Pair {
    double correlation;
    std::size_t a, b;
  };
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (std::size_t j = i + 1; j < open.size(); ++j) {
      const double r = covariance(sums[i], sums[j]) / std::sqrt(std::max(own[i] * own[j], 1e-300));
      if (r < kErrors.anticorrelated) pairs.push_back({r, i, j});
    }
  }
  std::ranges::sort(pairs, {}, &Pair::correlation);
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
    std::ranges::sort(group, [&](std::uint32_t a, std::uint32_t b) {
      return table_->classes[a].busy > table_->classes[b].busy;
    });
  }
  return by_root;
}

}  // namespace jouleprof::analysis
