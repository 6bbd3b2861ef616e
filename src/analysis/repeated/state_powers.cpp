#include "analysis/repeated/state_powers.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "analysis/kernels/regression/power_rows.h"
#include "analysis/kernels/regression/power_timing.h"

namespace jouleprof::analysis {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::array kNearWindows{0.03, 0.1, 0.3, 1.0, 3.0};  // of the mean power
constexpr double kNoneNear = 0.001;
constexpr double kPriorWatts = 1000;  // wide: sensors show little of a short window's power
constexpr double kMostWatts = 20e3;   // no board draws more
constexpr std::size_t kFewestRows = 100;

double mean_watts(const PowerRows& rows) {
  double joules = 0;
  double length = 0;
  for (const auto& row : rows.rows) {
    joules += row.watts * (row.end - row.begin);
    length += row.end - row.begin;
  }
  return joules / length;
}

// `near_windows`: standard deviation of the power next to windows from that elsewhere.
std::vector<PowerPrior> priors_of(const PowerRows& rows, const ActivityTable& table,
                                  double near_windows) {
  double lowest = 1e300;
  for (const auto& row : rows.rows) lowest = std::min(lowest, row.watts);
  const double base = 0.5 * lowest;  // each state has its own power above it
  std::vector<PowerPrior> priors{{base, 0, base, base}};
  for (std::size_t k = 0; k < table.classes.size(); ++k) {
    priors.push_back({mean_watts(rows) - base, kPriorWatts, -base, kMostWatts});
  }
  for (std::size_t v = 0; v < table.variants.size(); ++v) {
    priors.push_back({0, near_windows, -kMostWatts, kMostWatts});
  }
  priors.push_back({0, 1e-3, 0, 0});  // idle between launches: bins are full
  return priors;
}

// The logarithm of the evidence of Gaussian priors, up to a constant.
class Evidence {
 public:
  // `solution`: gives the variances of rows.
  Evidence(const PowerRows& rows, const PowerSolution& solution) {
    const auto n = static_cast<Index>(rows.columns + 1);
    information_ = MatrixXd::Zero(n, n);
    right_ = VectorXd::Zero(n);
    VectorXd factors(n);
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      factors.setZero();
      factors[0] = 1;
      for (const auto& term : rows.of(i)) factors[1 + term.column] = term.share;
      const double sigma = rows.rows[i].counter ? solution.counter_sigma : solution.sample_sigma;
      const double weight = 1 / (sigma * sigma);
      information_.selfadjointView<Eigen::Lower>().rankUpdate(factors, weight);
      right_ += weight * rows.rows[i].watts * factors;
    }
    information_ = MatrixXd(information_.selfadjointView<Eigen::Lower>());
  }

  double of(const std::vector<PowerPrior>& priors) const {
    MatrixXd posterior = information_;
    VectorXd right = right_;
    double out = 0;
    for (std::size_t k = 0; k < priors.size(); ++k) {
      const double sigma = std::max(priors[k].sigma, 1e-3);
      const double weight = 1 / (sigma * sigma);
      const auto at = static_cast<Index>(k);
      posterior(at, at) += weight;
      right[at] += weight * priors[k].mean;
      out -= std::log(sigma) + 0.5 * weight * priors[k].mean * priors[k].mean;
    }
    const Eigen::LDLT<MatrixXd> factor(posterior);
    out -= 0.5 * factor.vectorD().array().log().sum();
    return out + 0.5 * right.dot(factor.solve(right));
  }

 private:
  MatrixXd information_;
  VectorXd right_;
};

std::vector<PowerPrior> best_priors(const PowerRows& rows, const ActivityTable& table) {
  const double mean = mean_watts(rows);
  std::vector<PowerPrior> best = priors_of(rows, table, kNearWindows.back() * mean);
  const Evidence evidence(rows, solve_power(rows, best));
  double most = evidence.of(best);
  for (const double share : kNearWindows) {
    auto priors = priors_of(rows, table, share * mean);
    const double found = evidence.of(priors);
    if (found <= most) continue;
    most = found;
    best = std::move(priors);
  }
  return best;
}

}  // namespace

std::optional<StatePowers> state_powers(const WindowStates& states,
                                        std::span<const ObservedPower> observed,
                                        double time_constant, double drift) {
  std::vector<std::uint32_t> column_of(states.entries());
  std::iota(column_of.begin(), column_of.end(), 0U);
  const std::size_t columns = column_of.size() + 1;
  const SensorTiming timing = fit_time_constant(states.table, observed, time_constant, drift);
  const PowerRows rows = power_rows(states.table, column_of, columns, observed, timing);
  if (rows.rows.size() < kFewestRows) return std::nullopt;
  SensorTiming other = timing;
  other.time_constant += other.time_constant_sigma;
  const PowerRows others = power_rows(states.table, column_of, columns, observed, other);
  const double none = kNoneNear * mean_watts(rows);
  const auto none_near = solve_power(rows, priors_of(rows, states.table, none));
  StatePowers out{solve_power(rows, best_priors(rows, states.table), &others), {}};
  out.near_shift = none_near.watts - out.solution.watts;
  return out;
}

double modelled_joules(const WindowStates& states, const std::vector<double>& times,
                       const VectorXd& watts) {
  double joules = 0;
  for (std::size_t k = 0; k < times.size(); ++k) {
    const double own = watts[static_cast<Index>(k) + 1];
    joules += times[k] * (k < states.table.classes.size() ? watts[0] + own : own);
  }
  return joules;
}

namespace {

constexpr double kBlock = 1;  // seconds

}  // namespace

PowerDrift::PowerDrift(const WindowStates& states, const Eigen::VectorXd& watts,
                       EnergyTimeline& timeline)
    : begin_(states.first) {
  const auto& table = states.table;
  for (double t = states.first; t < states.last; t += kBlock) {
    const double end = std::min(t + kBlock, states.last);
    const auto energy = timeline.energy(table.time.host_of(t), table.time.host_of(end));
    std::vector<double> times(states.entries(), 0.0);
    states.add_time(t, end, times);
    const double modelled = modelled_joules(states, times, watts);
    if (end < t + kBlock / 2 && !ratios_.empty()) break;
    ratios_.push_back(energy && modelled > 0 ? energy->energy.joules() / modelled : 1.0);
  }
}

double PowerDrift::ratio(double t) const {
  if (ratios_.empty()) return 1;
  const double at = (t - begin_) / kBlock - 0.5;
  const double left = std::clamp(std::floor(at), 0.0, static_cast<double>(ratios_.size() - 1));
  const double part = std::clamp(at - left, 0.0, 1.0);
  const auto i = static_cast<std::size_t>(left);
  return (1 - part) * ratios_[i] + part * ratios_[std::min(i + 1, ratios_.size() - 1)];
}

double PowerDrift::variation() const {
  double mean = 0;
  double squares = 0;
  for (const double ratio : ratios_) {
    mean += ratio / static_cast<double>(ratios_.size());
    squares += ratio * ratio / static_cast<double>(ratios_.size());
  }
  return std::sqrt(std::max(squares - mean * mean, 0.0));
}

}  // namespace jouleprof::analysis
