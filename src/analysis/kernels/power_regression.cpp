#include "analysis/kernels/power_regression.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>

namespace jouleprof::analysis {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kBlock = 1.0;  // seconds over which errors may hang together
constexpr double kSway = 0.25;  // seconds over which clocks that are held may stay
constexpr double kMostStretches = 2000;
constexpr double kOutlier = 3.0;  // sigmas
constexpr int kRounds = 4;
constexpr double kBound = 1e-3;      // watts
constexpr double kWellKnown = 5;     // watts
constexpr double kBestKnown = 0.01;  // of the mean power: no model of a kernel's power is better

// What is known of the errors of one kind of rows.
struct Noise {
  double sigma = 5;
  double moving = 0;  // each error is e(i) + moving * e(i - 1) of independent e
};

// A first-order moving average with the neighbours' correlation r, invertible.
double moving_average(double r) {
  r = std::clamp(r, -0.45, 0.45);
  return std::abs(r) < 0.02 ? 0.0 : (1 - std::sqrt(1 - 4 * r * r)) / (2 * r);
}

class Solver {
 public:
  Solver(const PowerRows& rows, const std::vector<PowerPrior>& priors)
      : rows_(rows), priors_(priors), n_(static_cast<Index>(priors.size())) {
    neighbour_.assign(rows.rows.size(), 0);
    std::array<std::size_t, 2> last{};
    std::array<bool, 2> any{};
    std::array<double, 2> usual{0.11, 0.03};
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      const std::size_t kind = rows.rows[i].counter ? 0 : 1;
      if (any[kind] && rows.rows[i].end - rows.rows[last[kind]].end < usual[kind]) {
        neighbour_[i] = last[kind] + 1;
      }
      last[kind] = i;
      any[kind] = true;
    }
  }

  PowerSolution run(const PowerRows* others) {
    VectorXd watts(n_);
    for (Index k = 0; k < n_; ++k) watts[k] = priors_[static_cast<std::size_t>(k)].mean;
    residuals_ = errors(rows_, watts);
    for (int round = 0; round < kRounds; ++round) {
      learn_noise(round);
      gather();
      watts = bounded();
      residuals_ = errors(rows_, watts);
    }
    PowerSolution out;
    out.watts = watts;
    const Eigen::LDLT<MatrixXd> factor(information_);
    // What an error of idle moves: itself, and all others against it.
    VectorXd moved = VectorXd::Zero(n_);
    if (is_bound()) {
      moved[0] = 1 / (kBound * kBound);
      moved = factor.solve(moved);
    }
    const MatrixXd idle = std::pow(priors_[0].sigma, 2) * moved * moved.transpose();
    out.covariance = factor.solve(MatrixXd::Identity(n_, n_)) + idle;
    out.robust = factor.solve(factor.solve(scatter()).transpose()) + idle;
    out.pulls = pulls(factor, watts);
    out.otherwise = others == nullptr ? VectorXd::Zero(n_) : otherwise(factor, watts, *others);
    out.counter_sigma = noise_[0].sigma;
    out.sample_sigma = noise_[1].sigma;
    out.explained = explained();
    out.rows = rows_.rows.size();
    return out;
  }

 private:
  bool is_bound() const { return priors_[0].sigma <= kWellKnown; }
  std::size_t kind_of(std::size_t row) const { return rows_.rows[row].counter ? 0 : 1; }

  static VectorXd errors(const PowerRows& rows, const VectorXd& watts) {
    VectorXd out(static_cast<Index>(rows.rows.size()));
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      double sum = watts[0];
      for (const auto& term : rows.of(i)) sum += term.share * watts[1 + term.column];
      out[static_cast<Index>(i)] = rows.rows[i].watts - sum;
    }
    return out;
  }

  // To first order: what the others leave more than these pulls at the watts.
  VectorXd otherwise(const Eigen::LDLT<MatrixXd>& factor, const VectorXd& watts,
                     const PowerRows& others) const {
    const VectorXd more = errors(others, watts) - residuals_;
    VectorXd pull = VectorXd::Zero(n_);
    whitened([&](std::size_t i) { return more[static_cast<Index>(i)]; },
             [&](std::size_t, const VectorXd& row, double value, double weight) {
               pull += weight * value * row;
             });
    return factor.solve(pull);
  }

  double mean_watts() const {
    double sum = 0;
    for (const auto& row : rows_.rows) sum += row.watts;
    return sum / static_cast<double>(rows_.rows.size());
  }

  void learn_noise(int round) {
    for (std::size_t kind = 0; kind < 2; ++kind) {
      // A first guess may be far off: the median is not moved by its outliers.
      std::vector<double> size;
      double pairs = 0;
      double products = 0;
      double squares = 0;
      const double limit = round == 0 ? 1e300 : kOutlier * noise_[kind].sigma;
      for (std::size_t i = 0; i < rows_.rows.size(); ++i) {
        if (kind_of(i) != kind) continue;
        const double e = std::clamp(residuals_[static_cast<Index>(i)], -limit, limit);
        size.push_back(std::abs(e));
        squares += e * e;
        if (neighbour_[i] == 0) continue;
        const double f =
            std::clamp(residuals_[static_cast<Index>(neighbour_[i] - 1)], -limit, limit);
        products += e * f;
        pairs += 1;
      }
      if (size.empty()) continue;
      const double count = static_cast<double>(size.size());
      if (round == 0) {
        std::nth_element(size.begin(), size.begin() + static_cast<std::ptrdiff_t>(size.size() / 2),
                         size.end());
        noise_[kind] = {std::max(1.48 * size[size.size() / 2], 0.5), 0};
        continue;
      }
      const double freedom = std::max(count - used_, 0.1 * count);
      noise_[kind].sigma = std::max(std::sqrt(squares / freedom), kBestKnown * mean_watts());
      const double correlation =
          pairs > 30 && squares > 0 ? products / pairs / (squares / count) : 0;
      // Only what could not be chance.
      noise_[kind].moving =
          std::abs(correlation) > 2 / std::sqrt(pairs + 1) ? moving_average(correlation) : 0;
    }
  }

  // Calls use(row's index, whitened factors, whitened value of `value(i)`, weight) for each row.
  template <class Value, class Use>
  void whitened(Value value, Use use) const {
    std::array<VectorXd, 2> last_row{VectorXd::Zero(n_), VectorXd::Zero(n_)};
    std::array<double, 2> last_value{};
    std::array<std::size_t, 2> last_index{};
    for (std::size_t i = 0; i < rows_.rows.size(); ++i) {
      const std::size_t kind = kind_of(i);
      const Noise& noise = noise_[kind];
      VectorXd& row = last_row[kind];
      const bool linked =
          neighbour_[i] != 0 && neighbour_[i] == last_index[kind] && noise.moving != 0;
      const double kept = linked ? -noise.moving : 0.0;
      row *= kept;
      row[0] += 1;
      for (const auto& term : rows_.of(i)) row[1 + term.column] += term.share;
      last_value[kind] = value(i) + kept * last_value[kind];
      last_index[kind] = i + 1;
      // A counter's row over several updates is that much surer.
      const double steps =
          kind == 0 ? std::max((rows_.rows[i].end - rows_.rows[i].begin) / 0.1, 0.2) : 1.0;
      const double own = noise.sigma * noise.sigma / (1 + noise.moving * noise.moving) / steps;
      const double off = std::abs(residuals_[static_cast<Index>(i)]) / noise.sigma;
      use(i, row, last_value[kind], 1 / own / std::max(1.0, off / kOutlier));
    }
  }

  void gather() {
    information_ = MatrixXd::Zero(n_, n_);
    right_ = VectorXd::Zero(n_);
    whitened([&](std::size_t i) { return rows_.rows[i].watts; },
             [&](std::size_t, const VectorXd& row, double value, double weight) {
               information_.selfadjointView<Eigen::Lower>().rankUpdate(row, weight);
               right_ += weight * value * row;
             });
    information_ = MatrixXd(information_.selfadjointView<Eigen::Lower>());
    data_ = information_;
    for (Index k = 0; k < n_; ++k) {
      const auto& prior = priors_[static_cast<std::size_t>(k)];
      const double sigma = k == 0 && is_bound() ? kBound : prior.sigma;
      const double weight = 1 / (sigma * sigma);
      information_(k, k) += weight;
      right_[k] += weight * prior.mean;
    }
  }

  // Minimises x'Ax/2 - b'x within the bounds: Newton's step, then coordinate by coordinate.
  VectorXd bounded() {
    const Eigen::LDLT<MatrixXd> factor(information_);
    VectorXd x = factor.solve(right_);
    used_ = factor.solve(data_).trace();
    bool inside = true;
    for (Index k = 0; k < n_; ++k) {
      const auto& prior = priors_[static_cast<std::size_t>(k)];
      const double held = std::clamp(x[k], prior.lowest, prior.highest);
      inside = inside && held == x[k];
      x[k] = held;
    }
    if (inside) return x;
    VectorXd gradient = information_ * x - right_;
    for (int sweep = 0; sweep < 500; ++sweep) {
      double moved = 0;
      for (Index k = 0; k < n_; ++k) {
        const auto& prior = priors_[static_cast<std::size_t>(k)];
        const double to =
            std::clamp(x[k] - gradient[k] / information_(k, k), prior.lowest, prior.highest);
        const double step = to - x[k];
        if (step == 0) continue;
        gradient += step * information_.col(k);
        x[k] = to;
        moved = std::max(moved, std::abs(step));
      }
      if (moved < 1e-6) break;
    }
    return x;
  }

  // The sum over blocks of time of what the block's errors pull, squared; the prior added.
  MatrixXd scatter() const {
    MatrixXd out = information_ - data_;
    VectorXd pull = VectorXd::Zero(n_);
    double begin = rows_.rows.empty() ? 0 : rows_.rows.front().end;
    whitened([&](std::size_t i) { return residuals_[static_cast<Index>(i)]; },
             [&](std::size_t i, const VectorXd& row, double value, double weight) {
               if (rows_.rows[i].end > begin + kBlock) {
                 out.selfadjointView<Eigen::Lower>().rankUpdate(pull, 1.0);
                 pull.setZero();
                 begin = rows_.rows[i].end;
               }
               pull += weight * value * row;
             });
    out.selfadjointView<Eigen::Lower>().rankUpdate(pull, 1.0);
    return MatrixXd(out.selfadjointView<Eigen::Lower>());
  }

  // A stretch whose power is off by a part of it pulls at the watts; less what is not an error: in
  // that stretch those that ran did draw so much more.
  MatrixXd pulls(const Eigen::LDLT<MatrixXd>& factor, const VectorXd& watts) const {
    const auto& rows = rows_.rows;
    if (rows.empty()) return {};
    const double begin = rows.front().begin;
    const double length = std::max(kSway, (rows.back().end - begin) / kMostStretches);
    const auto stretches =
        static_cast<Index>(std::max((rows.back().end - begin) / length, 0.0)) + 1;
    MatrixXd pull = MatrixXd::Zero(n_, stretches);
    MatrixXd busy = MatrixXd::Zero(n_, stretches);
    whitened([&](std::size_t i) { return std::max(rows[i].watts - watts[0], 0.0); },
             [&](std::size_t i, const VectorXd& row, double value, double weight) {
               const Index at = std::min(
                   static_cast<Index>(std::max(rows[i].end - begin, 0.0) / length), stretches - 1);
               pull.col(at) += weight * value * row;
               for (const auto& term : rows_.of(i)) {
                 busy(1 + static_cast<Index>(term.column), at) +=
                     term.share * (rows[i].end - rows[i].begin);
               }
             });
    MatrixXd out = factor.solve(pull);
    for (Index k = 1; k < n_; ++k) {
      const double all = busy.row(k).sum();
      if (all > 0) out.row(k) -= watts[k] / all * busy.row(k);
    }
    return out.transpose();
  }

  double explained() const {
    double weight = 0;
    double mean = 0;
    for (std::size_t i = 0; i < rows_.rows.size(); ++i) {
      const double w = rows_.rows[i].end - rows_.rows[i].begin;
      weight += w;
      mean += w * rows_.rows[i].watts;
    }
    mean /= std::max(weight, 1e-12);
    double all = 0;
    double left = 0;
    for (std::size_t i = 0; i < rows_.rows.size(); ++i) {
      const double w = rows_.rows[i].end - rows_.rows[i].begin;
      all += w * std::pow(rows_.rows[i].watts - mean, 2);
      left += w * std::pow(residuals_[static_cast<Index>(i)], 2);
    }
    return all > 0 ? std::max(1 - left / all, 0.0) : 0.0;
  }

  const PowerRows& rows_;
  const std::vector<PowerPrior>& priors_;
  Index n_;
  std::vector<std::size_t> neighbour_;  // 1 + the row before of the same kind; 0: none next to it
  std::array<Noise, 2> noise_;
  VectorXd residuals_;
  MatrixXd information_, data_;
  VectorXd right_;
  double used_ = 0;  // degrees of freedom
};

}  // namespace

double PowerSolution::variance(const VectorXd& factor) const {
  return std::max(factor.dot(covariance * factor), factor.dot(robust * factor));
}

double PowerSolution::sway(const VectorXd& factor, double ratio) const {
  if (pulls.rows() == 0 || ratio == 0) return 0;
  // Most of a factor is nothing: a layer runs few classes.
  VectorXd moved = VectorXd::Zero(pulls.rows());
  for (Eigen::Index k = 0; k < factor.size(); ++k) {
    if (factor[k] != 0) moved += factor[k] * pulls.col(k);
  }
  return ratio * moved.cwiseAbs().sum();
}

PowerSolution solve_power(const PowerRows& rows, const std::vector<PowerPrior>& priors,
                          const PowerRows* others) {
  return Solver(rows, priors).run(others);
}

}  // namespace jouleprof::analysis
