#include "analysis/kernels/regression/power_regression.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "analysis/timeline/sensors/error_model.h"

namespace jouleprof::analysis {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kInterval = 0.25;  // seconds over which clocks may stay reduced
constexpr double kMostIntervals = 2000;
constexpr int kRounds = 4;
constexpr Index kMany = 300;  // columns: the trace of their inverse is estimated
constexpr int kProbes = 8;    // for it (Hutchinson 1990)
constexpr int kOtherRounds = 2;
constexpr Index kMostKnots = 24;
constexpr int kDriftRounds = 5;
constexpr double kFixed = 1e-3;     // watts: sigma of an idle power that is fixed
constexpr int kMostSteps = 200;     // to the columns that are at their bounds
constexpr int kPatience = 3;        // steps that may leave as many wrong as before
constexpr double kRounding = 1e-9;  // watts

class Solver {
 public:
  Solver(const PowerRows& rows, const std::vector<PowerPrior>& priors,
         std::span<const KnownPower> known)
      : rows_(rows),
        priors_(priors),
        known_(known),
        n_(static_cast<Index>(priors.size())),
        errors_(rows) {}

  PowerSolution run(const PowerRows* others) {
    VectorXd watts(n_);
    for (Index k = 0; k < n_; ++k) watts[k] = prior(k).mean;
    errors_.set_watts(watts);
    for (int round = 0; round < kRounds; ++round) {
      errors_.estimate(round == 0, effective_parameters_);
      set_normal_equations();
      watts = bounded_minimum();
      errors_.set_watts(watts);
    }
    PowerSolution out;
    out.watts = watts;
    const Eigen::LLT<MatrixXd> factor(information_);
    // The shift of all watts for 1 W of idle power.
    VectorXd moved = VectorXd::Zero(n_);
    if (is_idle_fixed()) {
      moved[0] = 1 / (kFixed * kFixed);
      moved = factor.solve(moved);
    }
    const MatrixXd idle = std::pow(priors_[0].sigma, 2) * moved * moved.transpose();
    out.covariance = factor.solve(MatrixXd::Identity(n_, n_));
    out.robust = out.covariance * cluster_scores() * out.covariance + idle;
    out.covariance += idle;
    out.influence = influence(factor, watts);
    if (any_rerun() || !known_.empty()) {
      out.program_shift = factor.solve(program_information());
      out.all_program_shift = out.program_shift.rightCols(n_ - 1) * watts.tail(n_ - 1);
    }
    out.alternative_shift =
        others == nullptr ? VectorXd::Zero(n_) : alternative_shift(factor, watts, *others);
    out.noise = errors_.noise();
    out.counter_sigma = out.noise[0].sigma;
    out.sample_sigma = out.noise[1].sigma;
    out.explained = explained();
    out.rows = rows_.rows.size();
    return out;
  }

  // The watts by these rows, where another solution's errors are theirs.
  VectorXd again(const PowerSolution& base) {
    errors_.set_noise(base.noise);
    VectorXd watts = base.watts;
    for (int round = 0; round < kOtherRounds; ++round) {
      errors_.set_watts(watts);
      set_normal_equations();
      watts = bounded_minimum();
    }
    return watts;
  }

  // The same of `base` with the variance of the last `count` columns' priors, which is theirs in
  // common, by expectation and maximisation (Dempster, Laird and Rubin 1977). `priors` are those of
  // this solver.
  DriftingIdle drifting(const PowerSolution& base, std::vector<PowerPrior>& priors, Index count) {
    const Index before = n_ - count;
    errors_.set_noise(base.noise);
    VectorXd watts = VectorXd::Zero(n_);
    watts.head(base.watts.size()) = base.watts;
    DriftingIdle out;
    for (int round = 0; round < kDriftRounds; ++round) {
      errors_.set_watts(watts);
      if (round > 0) errors_.estimate(false, effective_parameters_);
      set_normal_equations();
      watts = bounded_minimum();
      const Eigen::LLT<MatrixXd> factor(information_);
      const MatrixXd own = factor.solve(MatrixXd::Identity(n_, n_).rightCols(count));
      double squares = 0;
      for (Index k = before; k < n_; ++k) squares += watts[k] * watts[k] + own(k, k - before);
      out.watts = std::max(std::sqrt(squares / static_cast<double>(count)), kErrors.least_drift);
      for (Index k = before; k < n_; ++k) priors[static_cast<std::size_t>(k)].sigma = out.watts;
    }
    const Eigen::LLT<MatrixXd> factor(information_);
    const Index size = base.watts.size();
    out.shift = watts.head(size) - base.watts;
    out.covariance = factor.solve(MatrixXd::Identity(n_, n_).leftCols(size)).topRows(size);
    return out;
  }

 private:
  bool is_idle_fixed() const { return priors_[0].sigma <= kErrors.well_known_idle; }
  const PowerPrior& prior(Index column) const { return priors_[static_cast<std::size_t>(column)]; }

  // One Gauss-Newton step from `watts` for the residuals of the other rows.
  VectorXd alternative_shift(const Eigen::LLT<MatrixXd>& factor, const VectorXd& watts,
                             const PowerRows& others) const {
    const VectorXd more = RowErrors::residuals(others, watts) - errors_.residuals();
    VectorXd score = VectorXd::Zero(n_);
    errors_.whitened([&](std::size_t i) { return more[static_cast<Index>(i)]; },
                     [&](std::size_t, SparseRow row, double value, double weight) {
                       add_row(row, weight * value, score);
                     });
    return factor.solve(score);
  }

  // Of the rows (data_), with the priors (information_).
  void set_normal_equations() {
    information_ = MatrixXd::Zero(n_, n_);
    right_ = VectorXd::Zero(n_);
    errors_.whitened([&](std::size_t i) { return rows_.rows[i].watts; },
                     [&](std::size_t, SparseRow row, double value, double weight) {
                       add_outer_product(row, weight, information_);
                       add_row(row, weight * value, right_);
                     });
    information_ = MatrixXd(information_.selfadjointView<Eigen::Lower>());
    data_ = information_;
    for (Index k = 0; k < n_; ++k) {
      const double sigma = k == 0 && is_idle_fixed() ? kFixed : prior(k).sigma;
      const double weight = 1 / (sigma * sigma);
      information_(k, k) += weight;
      right_[k] += weight * prior(k).mean;
    }
    // All err by one factor, too (ErrorModel::known_together): the inverse of their covariance is
    // that of their own errors less a matrix of rank one (Sherman and Morrison 1950).
    VectorXd common = VectorXd::Zero(n_);
    const double factor = 1 / (kErrors.known_together * kErrors.known_together);
    double all = factor;
    for (const KnownPower& k : known_) {
      const double weight = 1 / (k.sigma * k.sigma);
      all += weight * k.watts * k.watts;
      for (const std::size_t a : k.columns) {
        right_[static_cast<Index>(a)] += weight * k.watts;
        common[static_cast<Index>(a)] += weight * k.watts;
        for (const std::size_t b : k.columns) {
          information_(static_cast<Index>(a), static_cast<Index>(b)) += weight;
        }
      }
    }
    if (known_.empty()) return;
    information_ -= common * common.transpose() / all;
    right_ -= common * (all - factor) / all;
  }

  bool any_rerun() const {
    return std::ranges::any_of(rows_.rows, [](const PowerRow& row) { return row.in_rerun; });
  }

  MatrixXd program_information() const {
    MatrixXd out = MatrixXd::Zero(n_, n_);
    errors_.whitened([](std::size_t) { return 0.0; },
                     [&](std::size_t i, SparseRow row, double, double weight) {
                       if (!rows_.rows[i].in_rerun) add_outer_product(row, weight, out);
                     });
    return MatrixXd(out.selfadjointView<Eigen::Lower>());
  }

  VectorXd bounded_minimum() {
    const Eigen::LLT<MatrixXd> factor(information_);
    effective_parameters_ = trace_of_hat(factor);
    return within_bounds(factor, factor.solve(right_));
  }

  // The minimum of x'Ax/2 - b'x within the bounds, where `free` is that without them: by block
  // principal pivoting (Judice and Pires 1994). Few columns are at a bound, so that each step
  // solves for their forces alone: Ax - b is the force of a column's bound, and 0 for all others.
  VectorXd within_bounds(const Eigen::LLT<MatrixXd>& factor, const VectorXd& free) const {
    std::map<Index, double> held;       // columns and the bounds that they are at
    std::map<Index, VectorXd> inverse;  // their columns of the inverse of A
    VectorXd x = free;
    VectorXd force = VectorXd::Zero(n_);
    std::size_t fewest = priors_.size() + 1;
    int patience = kPatience;
    for (int step = 0; step < kMostSteps; ++step) {
      std::vector<Index> wrong;
      for (Index k = 0; k < n_; ++k) {
        const auto at = held.find(k);
        const bool is_wrong =
            at == held.end()
                ? x[k] < prior(k).lowest - kRounding || x[k] > prior(k).highest + kRounding
                : (at->second == prior(k).lowest ? force[k] < 0 : force[k] > 0);
        if (is_wrong) wrong.push_back(k);
      }
      if (wrong.empty()) break;
      // One at a time always ends (Murty 1974); all at once takes fewer steps where it ends.
      if (wrong.size() < fewest) {
        fewest = wrong.size();
        patience = kPatience;
      } else if (--patience < 0) {
        wrong.erase(wrong.begin(), wrong.end() - 1);
      }
      for (const Index k : wrong) {
        if (held.erase(k) == 0)
          held[k] = x[k] < prior(k).lowest ? prior(k).lowest : prior(k).highest;
      }
      const auto count = static_cast<Index>(held.size());
      MatrixXd columns(n_, count);
      VectorXd off(count);
      Index i = 0;
      for (const auto& [k, bound] : held) {
        const auto [column, is_new] = inverse.try_emplace(k);
        if (is_new) column->second = factor.solve(VectorXd::Unit(n_, k));
        columns.col(i) = column->second;
        off[i++] = bound - free[k];
      }
      MatrixXd among(count, count);
      i = 0;
      for (const auto& [k, bound] : held) among.row(i++) = columns.row(k);
      const VectorXd forces = among.llt().solve(off);
      x = free + columns * forces;
      force.setZero();
      i = 0;
      for (const auto& [k, bound] : held) {
        force[k] = forces[i++];
        x[k] = bound;  // exactly
      }
    }
    for (Index k = 0; k < n_; ++k) x[k] = std::clamp(x[k], prior(k).lowest, prior(k).highest);
    return x;
  }

  double trace_of_hat(const Eigen::LLT<MatrixXd>& factor) const {
    if (n_ <= kMany) return factor.solve(data_).trace();
    std::minstd_rand random(1);
    MatrixXd probes(n_, kProbes);
    for (Index i = 0; i < probes.size(); ++i) probes(i) = random() % 2 == 0 ? 1.0 : -1.0;
    return (probes.transpose() * factor.solve(data_ * probes)).trace() / kProbes;
  }

  // The middle of the sandwich estimator: outer products of the clusters' scores, and the prior.
  MatrixXd cluster_scores() const {
    MatrixXd out = information_ - data_;
    VectorXd score = VectorXd::Zero(n_);
    double begin = rows_.rows.empty() ? 0 : rows_.rows.front().end;
    errors_.whitened([&](std::size_t i) { return errors_.residuals()[static_cast<Index>(i)]; },
                     [&](std::size_t i, SparseRow row, double value, double weight) {
                       if (rows_.rows[i].end > begin + kErrors.clustered) {
                         out.selfadjointView<Eigen::Lower>().rankUpdate(score, 1.0);
                         score.setZero();
                         begin = rows_.rows[i].end;
                       }
                       add_row(row, weight * value, score);
                     });
    out.selfadjointView<Eigen::Lower>().rankUpdate(score, 1.0);
    return MatrixXd(out.selfadjointView<Eigen::Lower>());
  }

  // Minus the part that is no error: if power in an interval was higher, the kernels that ran in it
  // did draw more, by their share of their busy time.
  MatrixXd influence(const Eigen::LLT<MatrixXd>& factor, const VectorXd& watts) const {
    const auto& rows = rows_.rows;
    if (rows.empty()) return {};
    const double begin = rows.front().begin;
    const double length = PowerSolution::interval_of(rows_, static_cast<std::size_t>(n_));
    const auto intervals =
        static_cast<Index>(std::max((rows.back().end - begin) / length, 0.0)) + 1;
    MatrixXd score = MatrixXd::Zero(n_, intervals);
    MatrixXd busy = MatrixXd::Zero(n_, intervals);
    errors_.whitened([&](std::size_t i) { return std::max(rows[i].watts - watts[0], 0.0); },
                     [&](std::size_t i, SparseRow row, double value, double weight) {
                       if (rows[i].in_rerun) return;  // at the clock that its loop is known to have
                       const Index at =
                           std::min(static_cast<Index>(std::max(rows[i].end - begin, 0.0) / length),
                                    intervals - 1);
                       add_row(row, weight * value, score.col(at));
                       for (const auto& term : rows_.of(i)) {
                         busy(1 + static_cast<Index>(term.column), at) +=
                             term.share * (rows[i].end - rows[i].begin);
                       }
                     });
    MatrixXd out = factor.solve(score);
    for (Index k = 1; k < n_; ++k) {
      const double all = busy.row(k).sum();
      if (all > 0) out.row(k) -= watts[k] / all * busy.row(k);
    }
    return out.transpose();
  }

  double explained() const {
    double weight = 0;
    double mean = 0;
    for (const auto& row : rows_.rows) {
      weight += row.end - row.begin;
      mean += (row.end - row.begin) * row.watts;
    }
    mean /= std::max(weight, 1e-12);
    double all = 0;
    double left = 0;
    for (std::size_t i = 0; i < rows_.rows.size(); ++i) {
      const double w = rows_.rows[i].end - rows_.rows[i].begin;
      all += w * std::pow(rows_.rows[i].watts - mean, 2);
      left += w * std::pow(errors_.residuals()[static_cast<Index>(i)], 2);
    }
    return all > 0 ? std::max(1 - left / all, 0.0) : 0.0;
  }

  const PowerRows& rows_;
  const std::vector<PowerPrior>& priors_;
  std::span<const KnownPower> known_;
  Index n_;
  RowErrors errors_;
  MatrixXd information_, data_;
  VectorXd right_;
  double effective_parameters_ = 0;  // trace of the hat matrix
};

}  // namespace

double PowerSolution::variance(const VectorXd& factor) const {
  // Most factors are zero: a layer runs few kernel signatures.
  std::vector<Index> used;
  for (Index k = 0; k < factor.size(); ++k) {
    if (factor[k] != 0) used.push_back(k);
  }
  double by_model = 0;
  double by_clusters = 0;
  for (const Index i : used) {
    double model_sum = 0;
    double cluster_sum = 0;
    for (const Index k : used) {
      model_sum += covariance(k, i) * factor[k];
      cluster_sum += robust(k, i) * factor[k];
    }
    by_model += factor[i] * model_sum;
    by_clusters += factor[i] * cluster_sum;
  }
  double by_others = 0;
  for (Index m = 0; m < spread.cols(); ++m) {
    double sum = 0;
    for (const Index k : used) sum += spread(k, m) * factor[k];
    by_others += sum * sum;
  }
  return std::max(by_model, by_clusters) + by_others;
}

double PowerSolution::shift_by_program(const VectorXd& factor, std::size_t column) const {
  const auto k = static_cast<Index>(column);
  return program_shift.size() == 0 ? factor[k] : factor.dot(program_shift.col(k));
}

double PowerSolution::shift_by_all_of_program(const VectorXd& factor) const {
  if (program_shift.size() == 0) return factor.dot(watts);
  // Most factors are zero: a layer runs few kernel signatures.
  std::vector<Index> used;
  for (Index k = 0; k < factor.size(); ++k) {
    if (factor[k] != 0) used.push_back(k);
  }
  double own = 0;
  for (const Index k : used) {
    double shift = 0;
    for (const Index i : used) shift += factor[i] * program_shift(i, k);
    if (k > 0) own += std::abs(watts[k] * shift);
  }
  return std::max(std::abs(factor.dot(all_program_shift)), own);
}

// By interval, the shift of `factor . watts`.
VectorXd PowerSolution::moved_by(const VectorXd& factor) const {
  VectorXd moved = VectorXd::Zero(influence.rows());
  // Most factors are zero: a layer runs few kernel signatures.
  for (Index k = 0; k < factor.size(); ++k) {
    if (factor[k] != 0) moved += factor[k] * influence.col(k);
  }
  return moved;
}

double PowerSolution::maximum_shift(const VectorXd& factor, double ratio) const {
  if (influence.rows() == 0 || ratio == 0) return 0;
  return ratio * moved_by(factor).cwiseAbs().sum();
}

double PowerSolution::interval_of(const PowerRows& rows, std::size_t columns) {
  const double most = static_cast<Index>(columns) <= kMany ? kMostIntervals : kMostIntervals / 5.0;
  return std::max(kInterval, (rows.rows.back().end - rows.rows.front().begin) / most);
}

double PowerSolution::random_shift(const VectorXd& factor, double ratio) const {
  if (influence.rows() == 0 || ratio == 0) return 0;
  return ratio * moved_by(factor).norm();
}

PowerSolution solve_power(const PowerRows& rows, const std::vector<PowerPrior>& priors,
                          const PowerRows* others, std::span<const KnownPower> known) {
  return Solver(rows, priors, known).run(others);
}

DriftingIdle drifting_idle(const PowerSolution& base, const PowerRows& rows,
                           const std::vector<PowerPrior>& priors, double held_sigma,
                           std::span<const KnownPower> known) {
  const double begin = rows.rows.front().begin;
  const double length = rows.rows.back().end - begin;
  const Index knots =
      std::clamp(static_cast<Index>(length / kErrors.drift_knot) + 1, Index{2}, kMostKnots);
  const double step = std::max(length / static_cast<double>(knots - 1), 1e-6);
  PowerRows more;
  more.columns = rows.columns + 1 + static_cast<std::size_t>(knots);
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    PowerRow row = rows.rows[i];
    const auto terms = rows.of(i);
    row.first = more.terms.size();
    more.rows.push_back(row);
    more.terms.insert(more.terms.end(), terms.begin(), terms.end());
    auto column = static_cast<std::uint32_t>(rows.columns);
    more.terms.push_back({column++, 1});
    const double at = std::max(((row.begin + row.end) / 2 - begin) / step, 0.0);
    const auto knot = std::min(static_cast<Index>(at), knots - 2);
    const double part = std::min(at - static_cast<double>(knot), 1.0);
    column += static_cast<std::uint32_t>(knot);
    more.terms.push_back({column, static_cast<float>(1 - part)});
    more.terms.push_back({column + 1, static_cast<float>(part)});
  }
  std::vector<PowerPrior> all = priors;
  all.push_back({0, std::max(held_sigma, kErrors.least_drift), -1e3, 1e3});
  for (Index k = 0; k < knots; ++k) {
    all.push_back({0, kErrors.first_drift, -kErrors.most_drift, kErrors.most_drift});
  }
  return Solver(more, all, known).drifting(base, all, knots);
}

MatrixXd other_solutions(const PowerSolution& base, const std::vector<PowerPrior>& priors,
                         std::span<const PowerRows> others, std::span<const KnownPower> known) {
  MatrixXd out(base.watts.size(), static_cast<Index>(others.size()));
  for (std::size_t m = 0; m < others.size(); ++m) {
    out.col(static_cast<Index>(m)) = Solver(others[m], priors, known).again(base) - base.watts;
  }
  return out / std::sqrt(std::max(static_cast<double>(others.size()), 1.0));
}

void set_scale(PowerRows& rows, const std::function<double(const PowerRow&)>& part,
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
    const double of_row = part(rows.rows[i]);
    if (of_row == 0) continue;
    const auto own = terms.begin() + static_cast<std::ptrdiff_t>(first.back());
    const auto place = std::partition_point(
        own, terms.end(), [&](const PowerRows::Term& term) { return term.column < column; });
    terms.insert(place, {column, static_cast<float>(of_row * above / 100)});
  }
  for (std::size_t i = 0; i < rows.rows.size(); ++i) rows.rows[i].first = first[i];
  rows.terms = std::move(terms);
}

}  // namespace jouleprof::analysis
