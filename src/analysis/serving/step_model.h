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
#include <utility>
#include <vector>

#include "analysis/kernels/kernel_model.h"
#include "analysis/kernels/regression/power_regression.h"
#include "analysis/kernels/regression/power_rows.h"
#include "analysis/kernels/regression/power_timing.h"
#include "analysis/timeline/sensors/observed_sensor.h"
#include "model/activity/serving.h"

namespace jouleprof::analysis {

// The work of a request in a step: prefill tokens, decode tokens, products of prefill tokens with
// the tokens that they attend to, tokens of context that decoding reads.
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
  std::size_t engine = 0;
  double part = 1;  // of its time: less where it takes turns with steps that overlap it

  double time() const { return end - begin; }
  double own_time() const { return part * time(); }
};

// Calls `take` with each time between two edges of steps, its length, and the steps in it.
// `steps`: in order of their begins.
template <typename Take>
void for_each_overlap(std::span<const BoardStep> steps, const Take& take) {
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
    std::erase_if(open, [&](std::size_t s) { return steps[s].end <= begin; });
    for (; next < steps.size() && steps[next].begin <= begin; ++next) {
      if (steps[next].end > begin) open.push_back(next);
    }
    if (!open.empty()) take(begin, edges[i + 1] - begin, std::as_const(open));
  }
}

// Steps that overlap take turns on the board, as contexts do without MPS. Sets `part` of each step;
// false: none overlap.
inline bool take_turns(std::vector<BoardStep>& steps) {
  std::vector<double> own(steps.size());
  for_each_overlap(steps, [&](double, double width, const std::vector<std::size_t>& open) {
    for (const std::size_t s : open) own[s] += width / static_cast<double>(open.size());
  });
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (steps[s].time() > 0) steps[s].part = own[s] / steps[s].time();
  }
  return std::ranges::any_of(steps, [](const BoardStep& s) { return s.part < 1 - 1e-6; });
}

// Power in a step = idle + step_watts + what its work adds; the watts come from the regression that
// kernels have, with the sensors' response. The time of a step, which is known exactly, is another
// regression: fixed + fixed while any request prefills + what the work adds. Both together say what
// of a step's energy goes with its work. Each engine has watts and times of its own: a token of a
// large model costs more than one of a small model.
class StepModel {
 public:
  // `steps`: in order of their begins; they may overlap. Absent without rows.
  static std::optional<StepModel> fit(std::span<const BoardStep> steps, std::size_t engines,
                                      TimeBase time, std::span<const ObservedPower> observed,
                                      const IdleHint& idle, double time_constant) {
    if (steps.empty() || observed.empty()) return std::nullopt;
    StepModel model;
    std::vector<StepWork> sums(engines);
    std::vector<double> busy(engines);
    for (const BoardStep& s : steps) {
      busy[s.engine] += s.own_time();
      for (std::size_t k = 0; k < kWorkKinds; ++k) sums[s.engine][k] += s.work[k];
    }
    model.engines_.resize(engines);
    for (std::size_t e = 0; e < engines; ++e) {
      for (std::size_t k = 0; k < kWorkKinds; ++k) {
        if (sums[e][k] > 0) model.engines_[e].scale[k] = busy[e] / sums[e][k];
      }
    }
    const ActivityTable table = model.table_of(steps, time);
    if (table.bins.empty()) return std::nullopt;
    const std::size_t columns = kColumns * engines;
    std::vector<std::uint32_t> column_of(columns);
    std::iota(column_of.begin(), column_of.end(), 0U);
    const auto timing = fit_timing(table, observed, time_constant, 0);
    const auto rows_of = [&](const SensorTiming& t) {
      return power_rows(table, column_of, columns + 1, observed, t);
    };
    const PowerRows rows = rows_of(timing.best);
    if (rows.rows.empty()) return std::nullopt;
    const double above =
        mean_above(observed, idle.watts, table.busy / std::max(table.end - table.begin, 1e-9));
    std::vector<PowerPrior> priors{{idle.watts, std::max(idle.sigma, 0.1), 0, 10 * above + 1000}};
    for (std::size_t c = 0; c < columns; ++c) {
      priors.push_back(c % kColumns == 0 ? PowerPrior{0.6 * above, 0.6 * above, 0, 10 * above}
                                         : PowerPrior{0.1 * above, 0.4 * above, 0, 10 * above});
    }
    priors.push_back({0, 0.01, 0, 0.1});  // idle between launches: steps have none
    model.solution_ = solve_power(rows, priors);
    std::vector<PowerRows> others;
    for (const auto& other : timing.others) others.push_back(rows_of(other));
    if (!others.empty()) model.solution_.spread = other_solutions(model.solution_, priors, others);
    for (std::size_t e = 0; e < engines; ++e) model.fit_times(steps, e);
    return model;
  }

  // Above idle_watts(). `factor`: the derivative of an energy by the regression's watts.
  double joules_of(const Eigen::VectorXd& factor) const { return factor.dot(solution_.watts); }
  Eigen::VectorXd factor_of(const BoardStep& s) const {
    return factor_of(s.engine, s.own_time(), s.work);
  }
  Eigen::VectorXd factor_of(std::size_t engine, double time, const StepWork& work) const {
    VectorXd out = VectorXd::Zero(solution_.watts.size());
    const auto first = static_cast<Index>(1 + kColumns * engine);
    out[first] = time;
    for (std::size_t k = 0; k < kWorkKinds; ++k)
      out[first + 1 + static_cast<Index>(k)] = engines_[engine].scale[k] * work[k];
    return out;
  }
  // The factor of what goes with the work of an engine, its time included: one request's or that of
  // all.
  Eigen::VectorXd own_factor(std::size_t engine, const StepWork& work) const {
    double time = 0;
    for (std::size_t k = 0; k < kWorkKinds; ++k) time += engines_[engine].own_time[k] * work[k];
    return factor_of(engine, time, work);
  }
  // The factor of what any prefill adds to a step, however long it is.
  Eigen::VectorXd prefill_factor(std::size_t engine) const {
    return factor_of(engine, engines_[engine].prefill_time, {});
  }

  double variance(const Eigen::VectorXd& factor) const { return solution_.variance(factor); }
  double idle_watts() const { return solution_.watts[0]; }
  double idle_sigma() const { return std::sqrt(std::max(solution_.covariance(0, 0), 0.0)); }
  double step_watts(std::size_t engine) const {
    return solution_.watts[static_cast<Index>(1 + kColumns * engine)];
  }
  double explained() const { return solution_.explained; }
  std::size_t rows() const { return solution_.rows; }
  // The steps' numbers of requests, or their work, hardly vary: the fixed part of a step and the
  // requests' own cannot be separated.
  bool is_fixed_part_known() const { return fixed_known_; }

 private:
  using Index = Eigen::Index;
  using MatrixXd = Eigen::MatrixXd;
  using VectorXd = Eigen::VectorXd;

  static constexpr std::size_t kColumns = 1 + kWorkKinds;  // of an engine: time, work
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
  ActivityTable table_of(std::span<const BoardStep> steps, TimeBase time) const {
    ActivityTable table;
    table.time = time;
    table.classes.resize(kColumns * engines_.size());
    std::vector<double> busy(table.classes.size());
    for_each_overlap(steps, [&](double begin, double width, const auto& open) {
      std::ranges::fill(busy, 0.0);
      for (const std::size_t i : open) {
        const BoardStep& s = steps[i];
        const double part = width / s.time();
        double* column = &busy[kColumns * s.engine];
        column[0] += s.part * width;
        for (std::size_t k = 0; k < kWorkKinds; ++k)
          column[1 + k] += part * engines_[s.engine].scale[k] * s.work[k];
      }
      table.bins.push_back({begin, width, table.entries.size()});
      for (std::uint32_t k = 0; k < busy.size(); ++k) {
        if (busy[k] <= 0) continue;
        table.entries.push_back({k, static_cast<float>(busy[k])});
        auto& of = table.classes[k];
        of.busy = of.whole_busy += busy[k];
        of.launches = ++of.whole_launches;
      }
      table.busy = table.whole_busy += width;
    });
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

  void fit_times(std::span<const BoardStep> all, std::size_t engine) {
    std::vector<BoardStep> steps;
    for (const BoardStep& s : all) {
      if (s.engine == engine) steps.push_back(s);
    }
    if (steps.empty()) return;
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
        const double fitted = round > 0 ? terms.dot(x) : s.own_time();
        const double relative = std::abs(s.own_time() - fitted) / std::max(fitted, 1e-6);
        const double weight =
            (relative > kOutlier ? kOutlier / relative : 1) / std::pow(std::max(fitted, 1e-6), 2);
        normal += weight * terms * terms.transpose();
        right += weight * s.own_time() * terms;
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
      fixed_known_ &= left > kDistinct * normal(0, 0);
    }
    engines_[engine].prefill_time = x[1] * size[1];
    for (std::size_t k = 0; k < kWorkKinds; ++k) {
      engines_[engine].own_time[k] = x[2 + static_cast<Index>(k)] * size[2 + static_cast<Index>(k)];
    }
  }

  struct Engine {
    std::array<double, kWorkKinds> scale{};     // seconds of a column for one unit of work
    std::array<double, kWorkKinds> own_time{};  // seconds for one unit of work
    double prefill_time = 0;                    // seconds
  };
  PowerSolution solution_;  // idle; of each engine: time, the work; unused
  std::vector<Engine> engines_;
  bool fixed_known_ = true;
};

}  // namespace jouleprof::analysis
