// What a step of an inference server costs: its energy and time as linear functions of what it
// computed.
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "analysis/kernels/kernel_model.h"
#include "analysis/kernels/regression/power_regression.h"
#include "analysis/kernels/regression/power_rows.h"
#include "analysis/kernels/regression/power_timing.h"
#include "analysis/timeline/sensors/observed_sensor.h"
#include "model/activity/serving.h"

namespace jouleprof::analysis {

// Of a request in a step: prefill tokens, decode tokens, products of prefill tokens with the tokens
// that they attend to, tokens of context that decoding reads.
inline constexpr std::size_t kWorkKinds = 4;
using StepWork = std::array<double, kWorkKinds>;

inline StepWork work_of(const model::StepShare& share) {
  const auto tokens = static_cast<double>(share.tokens);
  const auto context = static_cast<double>(share.context);
  if (share.prefill) return {tokens, 0, tokens * (context + tokens / 2), 0};
  return {0, tokens, 0, context};
}

// A step on one board; times are seconds of a TimeBase.
struct BoardStep {
  double begin = 0;
  double end = 0;
  StepWork work{};       // of all its requests
  bool prefill = false;  // of any

  double time() const { return end - begin; }
};

// Power in a step = idle + step_watts + what its work adds; the watts come from the regression that
// kernels have, with the sensors' response. The time of a step, which is known exactly, is another
// regression: fixed + fixed while any request prefills + what the work adds. Both together say what
// of a step's energy goes with its work.
class StepModel {
 public:
  // `steps`: in order of their begins; they may overlap. Absent without rows.
  static std::optional<StepModel> fit(std::span<const BoardStep> steps, TimeBase time,
                                      std::span<const ObservedPower> observed, const IdleHint& idle,
                                      double time_constant) {
    if (steps.empty() || observed.empty()) return std::nullopt;
    StepModel model;
    StepWork sums{};
    double busy = 0;
    for (const BoardStep& s : steps) {
      busy += s.time();
      for (std::size_t k = 0; k < kWorkKinds; ++k) sums[k] += s.work[k];
    }
    if (busy <= 0) return std::nullopt;
    for (std::size_t k = 0; k < kWorkKinds; ++k) {
      if (sums[k] > 0) model.scale_[k] = busy / sums[k];
    }
    const ActivityTable table = table_of(steps, time, model.scale_);
    if (table.bins.empty()) return std::nullopt;
    std::vector<std::uint32_t> column_of(kColumns);
    std::iota(column_of.begin(), column_of.end(), 0U);
    const auto timing = fit_timing(table, observed, time_constant, 0);
    const auto rows_of = [&](const SensorTiming& t) {
      return power_rows(table, column_of, kColumns + 1, observed, t);
    };
    const PowerRows rows = rows_of(timing.best);
    if (rows.rows.empty()) return std::nullopt;
    const double above =
        mean_above(observed, idle.watts, table.busy / std::max(table.end - table.begin, 1e-9));
    std::vector<PowerPrior> priors{{idle.watts, std::max(idle.sigma, 0.1), 0, 10 * above + 1000}};
    priors.push_back({0.6 * above, 0.6 * above, 0, 10 * above});
    for (std::size_t k = 0; k < kWorkKinds; ++k) {
      priors.push_back({0.1 * above, 0.4 * above, 0, 10 * above});
    }
    priors.push_back({0, 0.01, 0, 0.1});  // idle between launches: steps have none
    model.solution_ = solve_power(rows, priors);
    std::vector<PowerRows> others;
    for (const auto& other : timing.others) others.push_back(rows_of(other));
    if (!others.empty()) model.solution_.spread = other_solutions(model.solution_, priors, others);
    model.fit_times(steps);
    return model;
  }

  // Above idle_watts().
  double joules_of(const BoardStep& step) const {
    double sum = step_watts() * step.time();
    for (std::size_t k = 0; k < kWorkKinds; ++k) {
      sum += solution_.watts[2 + static_cast<Index>(k)] * scale_[k] * step.work[k];
    }
    return sum;
  }
  // What goes with the work, its time included: of a request or of all of them.
  double own_joules(const StepWork& work) const {
    double sum = 0;
    for (std::size_t k = 0; k < kWorkKinds; ++k) {
      sum += work[k] *
             (step_watts() * own_time_[k] + solution_.watts[2 + static_cast<Index>(k)] * scale_[k]);
    }
    return sum;
  }
  // What any prefill adds to a step, however long it is.
  double prefill_joules() const { return step_watts() * prefill_time_; }
  // The derivatives of joules_of() and own_joules() by the regression's watts.
  Eigen::VectorXd factor_of(double time, const StepWork& work) const {
    VectorXd out = VectorXd::Zero(solution_.watts.size());
    out[1] = time;
    for (std::size_t k = 0; k < kWorkKinds; ++k)
      out[2 + static_cast<Index>(k)] = scale_[k] * work[k];
    return out;
  }
  Eigen::VectorXd own_factor(const StepWork& work) const {
    double time = 0;
    for (std::size_t k = 0; k < kWorkKinds; ++k) time += own_time_[k] * work[k];
    return factor_of(time, work);
  }
  Eigen::VectorXd prefill_factor() const { return factor_of(prefill_time_, {}); }

  double variance(const Eigen::VectorXd& factor) const { return solution_.variance(factor); }
  double idle_watts() const { return solution_.watts[0]; }
  double idle_sigma() const { return std::sqrt(std::max(solution_.covariance(0, 0), 0.0)); }
  double step_watts() const { return solution_.watts[1]; }
  double explained() const { return solution_.explained; }
  std::size_t rows() const { return solution_.rows; }
  // The steps' numbers of requests, or their work, hardly vary: the fixed part of a step and the
  // requests' own cannot be separated.
  bool is_fixed_part_known() const { return fixed_known_; }

 private:
  using Index = Eigen::Index;
  using MatrixXd = Eigen::MatrixXd;
  using VectorXd = Eigen::VectorXd;

  static constexpr std::size_t kColumns = 1 + kWorkKinds;  // time, work
  static constexpr Index kTimeTerms = 2 + static_cast<Index>(kWorkKinds);
  static constexpr int kRounds = 12;   // of reweighted least squares
  static constexpr int kSweeps = 400;  // of coordinates, to the constrained minimum
  static constexpr double kOutlier =
      0.1;  // relative residual beyond which a step counts less (Huber 1964)
  static constexpr double kRidge =
      1e-7;  // of the diagonal: keeps collinear terms apart from overflow
  static constexpr double kDistinct =
      1e-3;  // of a term's square that the others must leave unexplained

  // One bin for each interval between edges of steps; its entries are the time and work in it.
  static ActivityTable table_of(std::span<const BoardStep> steps, TimeBase time,
                                const std::array<double, kWorkKinds>& scale) {
    ActivityTable table;
    table.time = time;
    table.classes.resize(kColumns);
    std::vector<double> edges;
    edges.reserve(2 * steps.size());
    for (const BoardStep& s : steps) {
      edges.push_back(s.begin);
      edges.push_back(s.end);
    }
    std::ranges::sort(edges);
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    std::vector<std::size_t> open;
    std::size_t next = 0;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
      const double begin = edges[i];
      const double width = edges[i + 1] - begin;
      std::erase_if(open, [&](std::size_t s) { return steps[s].end <= begin; });
      for (; next < steps.size() && steps[next].begin <= begin; ++next) {
        if (steps[next].end > begin) open.push_back(next);
      }
      if (open.empty()) continue;
      std::array<double, kColumns> busy{width};
      for (const std::size_t s : open) {
        const double part = width / steps[s].time();
        for (std::size_t k = 0; k < kWorkKinds; ++k)
          busy[1 + k] += part * scale[k] * steps[s].work[k];
      }
      table.bins.push_back({begin, width, table.entries.size()});
      for (std::uint32_t k = 0; k < kColumns; ++k) {
        if (busy[k] <= 0) continue;
        table.entries.push_back({k, static_cast<float>(busy[k])});
        auto& of = table.classes[k];
        of.busy = of.whole_busy += busy[k];
        of.launches = ++of.whole_launches;
      }
      table.busy = table.whole_busy += width;
    }
    if (table.bins.empty()) return table;
    table.begin = table.bins.front().begin;
    table.end = table.bins.back().begin + table.bins.back().width;
    return table;
  }

  // The mean power above idle over [begin, end] of the bins, of the observations within.
  static double mean_above(std::span<const ObservedPower> observed, double idle,
                           double busy_share) {
    double sum = 0;
    double length = 0;
    for (const ObservedPower& s : observed) {
      sum += s.watts * (s.end - s.begin);
      length += s.end - s.begin;
    }
    const double mean = length > 0 ? sum / length - idle : 0;
    return std::max(mean / std::max(busy_share, 0.01), 1.0);
  }

  static VectorXd time_terms(const BoardStep& s) {
    VectorXd x(kTimeTerms);
    x << 1, s.prefill ? 1 : 0, VectorXd::Zero(static_cast<Index>(kWorkKinds));
    for (std::size_t k = 0; k < kWorkKinds; ++k) x[2 + static_cast<Index>(k)] = s.work[k];
    return x;
  }

  // argmin of x'Nx - 2r'x for x >= 0, by coordinates (Franc, Hlavac and Navara 2005).
  static VectorXd non_negative(const MatrixXd& normal, const VectorXd& right, VectorXd x) {
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      for (Index k = 0; k < x.size(); ++k) {
        if (normal(k, k) <= 0) continue;
        x[k] = std::max(0.0, x[k] + (right[k] - normal.row(k).dot(x)) / normal(k, k));
      }
    }
    return x;
  }

  void fit_times(std::span<const BoardStep> steps) {
    // Terms are scaled to a mean square of 1.
    VectorXd size = VectorXd::Zero(kTimeTerms);
    for (const BoardStep& s : steps) size += time_terms(s).cwiseAbs2();
    size = (size / static_cast<double>(steps.size())).cwiseSqrt();
    for (Index k = 0; k < kTimeTerms; ++k) size[k] = size[k] > 0 ? 1 / size[k] : 0;
    VectorXd x = VectorXd::Zero(kTimeTerms);
    MatrixXd normal;
    for (int round = 0; round < kRounds; ++round) {
      normal = MatrixXd::Zero(kTimeTerms, kTimeTerms);
      VectorXd right = VectorXd::Zero(kTimeTerms);
      for (const BoardStep& s : steps) {
        const VectorXd terms = time_terms(s).cwiseProduct(size);
        const double fitted = round > 0 ? terms.dot(x) : s.time();
        const double relative = std::abs(s.time() - fitted) / std::max(fitted, 1e-6);
        const double weight =
            (relative > kOutlier ? kOutlier / relative : 1) / std::pow(std::max(fitted, 1e-6), 2);
        normal += weight * terms * terms.transpose();
        right += weight * s.time() * terms;
      }
      normal.diagonal() *= 1 + kRidge;
      x = non_negative(normal, right, x);
    }
    // Whether the constant is apart from the other terms that steps have.
    std::vector<Index> other;
    for (Index k = 1; k < kTimeTerms; ++k) {
      if (size[k] > 0) other.push_back(k);
    }
    if (!other.empty() && normal(0, 0) > 0) {
      const MatrixXd rest = normal(other, other);
      const VectorXd common = normal(other, 0);
      const double left = normal(0, 0) - common.dot(rest.ldlt().solve(common));
      fixed_known_ = left > kDistinct * normal(0, 0);
    }
    prefill_time_ = x[1] * size[1];
    for (std::size_t k = 0; k < kWorkKinds; ++k) {
      own_time_[k] = x[2 + static_cast<Index>(k)] * size[2 + static_cast<Index>(k)];
    }
  }

  PowerSolution solution_;                     // idle, time, the work, unused
  std::array<double, kWorkKinds> scale_{};     // seconds of a column for one unit of work
  std::array<double, kWorkKinds> own_time_{};  // seconds for one unit of work
  double prefill_time_ = 0;                    // seconds
  bool fixed_known_ = true;
};

}  // namespace jouleprof::analysis
