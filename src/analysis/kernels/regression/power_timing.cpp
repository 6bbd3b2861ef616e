#include "analysis/kernels/regression/power_timing.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "analysis/kernels/regression/sparse_row.h"

namespace jouleprof::analysis {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t kMostColumns = 40;
constexpr std::size_t kFewestRows = 100;
constexpr double kLongest = 120;     // seconds of the recording
constexpr double kClear = 20;        // likelihood ratio statistic: significant
constexpr double kPriorWatts = 200;  // a wide Gaussian prior keeps the system regular

// The mean squared residual of a ridge regression (Hoerl and Kennard 1970).
double left_over(const PowerRows& rows) {
  const auto n = static_cast<Index>(rows.columns + 1);
  MatrixXd normal = MatrixXd::Zero(n, n);
  VectorXd right = VectorXd::Zero(n);
  double mean = 0;
  for (const auto& row : rows.rows) mean += row.watts;
  mean /= static_cast<double>(rows.rows.size());
  std::vector<Factor> row;
  const auto fill = [&](std::size_t i) {
    row.assign(1, {0, 1.0});
    for (const auto& term : rows.of(i)) {
      row.push_back({1 + static_cast<Index>(term.column), term.share});
    }
  };
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    fill(i);
    add_outer_product(row, 1, normal);
    add_row(row, rows.rows[i].watts - mean, right);
  }
  for (Index k = 0; k < n; ++k) normal(k, k) += 25 / (kPriorWatts * kPriorWatts);
  const VectorXd watts = normal.selfadjointView<Eigen::Lower>().ldlt().solve(right);
  double squares = 0;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    double sum = watts[0];
    for (const auto& term : rows.of(i)) sum += term.share * watts[1 + term.column];
    const double e = rows.rows[i].watts - mean - sum;
    squares += e * e;
  }
  return squares / static_cast<double>(rows.rows.size());
}

constexpr double kKnownSpread = 0.07;   // relative standard deviation among boards
constexpr double kSteady = 0.02;        // relative variation of power with the clocks
constexpr double kLeastSigma = 0.5e-3;  // seconds: the response is not exactly first-order

// The rows of one recording under different timings.
class Timings {
 public:
  Timings(const ActivityTable& table, std::span<const std::uint32_t> column_of, std::size_t columns,
          std::span<const ObservedPower> observed)
      : table_(table), column_of_(column_of), columns_(columns) {
    for (const ObservedPower& s : observed) {
      const double begin = table.bins.front().begin;
      if (s.begin < begin - 1 || s.end > begin + kLongest) continue;
      (s.counter ? counter_ : samples_).push_back(s);
    }
    for (auto* kind : {&counter_, &samples_}) {
      if (kind->size() < kFewestRows) kind->clear();
    }
  }

  void fit_offsets(SensorTiming& timing) const {
    timing.counter_late = best_offset(counter_, timing.time_constant);
    timing.samples_late = best_offset(samples_, timing.time_constant);
  }

  // The maximum of the Gaussian profile likelihood (variances profiled out) by a parabola through
  // the best of a grid and its neighbours; its sigma from the curvature. Keeps the fitted offsets.
  void fit_time_constant(SensorTiming& timing, bool steady) const {
    const double known = timing.time_constant;
    timing.time_constant_sigma = kKnownSpread * known;
    if (!steady || (counter_.empty() && samples_.empty())) return;
    const auto deviance = [&](double time_constant) {
      SensorTiming other = timing;
      other.time_constant = time_constant;
      double sum = 0;
      for (const auto* kind : {&counter_, &samples_}) {
        if (!kind->empty()) sum += static_cast<double>(kind->size()) * std::log(left(*kind, other));
      }
      return sum;
    };
    const double step = 0.1 * known;
    std::vector<double> found;
    for (int i = -4; i <= 4; ++i) found.push_back(deviance(known + i * step));
    const auto least = static_cast<std::size_t>(
        std::min_element(found.begin() + 1, found.end() - 1) - found.begin());
    const double before = found[least - 1];
    const double after = found[least + 1];
    const double bend = before - 2 * found[least] + after;
    // A minimum at the end of the range, or a flat one, does not determine it.
    if (found[least] > std::min(before, after) || bend < kClear * 0.5) return;
    timing.time_constant =
        known + step * (static_cast<double>(least) - 4 + (before - after) / (2 * bend));
    timing.time_constant_sigma = std::max(kLeastSigma, 2 * step * std::sqrt(2 / bend));
  }

 private:
  double left(std::span<const ObservedPower> observed, const SensorTiming& timing) const {
    return std::max(left_over(power_rows(table_, column_of_, columns_, observed, timing)), 1e-12);
  }

  double best_offset(std::span<const ObservedPower> observed, double time_constant) const {
    if (observed.empty()) return 0;
    const auto squares = [&](double late) {
      return left(observed, {time_constant, late, late, 0});
    };
    const double at_zero = squares(0);
    double best = 0;
    double least = at_zero;
    const auto look = [&](double from, double to, double step) {
      for (double late = from; late <= to + 1e-9; late += step) {
        const double s = squares(late);
        if (s < least) {
          least = s;
          best = late;
        }
      }
    };
    look(-0.010, 0.020, 0.003);
    look(best - 0.002, best + 0.002, 0.001);
    look(best - 0.0005, best + 0.0005, 0.0005);
    const double gain = static_cast<double>(observed.size()) * std::log(at_zero / least);
    return gain > kClear ? best : 0;
  }

  const ActivityTable& table_;
  std::span<const std::uint32_t> column_of_;
  std::size_t columns_;
  std::vector<ObservedPower> counter_;
  std::vector<ObservedPower> samples_;
};

// The signatures with most busy time have a column each.
class Columns {
 public:
  explicit Columns(const ActivityTable& table) : column_of_(table.classes.size()) {
    std::vector<std::uint32_t> order(table.classes.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return table.classes[a].whole_busy > table.classes[b].whole_busy;
    });
    own_ = std::min(order.size(), kMostColumns);
    for (std::size_t i = 0; i < order.size(); ++i) {
      column_of_[order[i]] = static_cast<std::uint32_t>(std::min(i, own_));
    }
  }
  std::span<const std::uint32_t> of_classes() const { return column_of_; }
  std::size_t count() const { return own_ + 2; }  // the other signatures, idle between launches

 private:
  std::vector<std::uint32_t> column_of_;
  std::size_t own_ = 0;
};

}  // namespace

SensorTiming fit_timing(const ActivityTable& table, std::span<const ObservedPower> observed,
                        double time_constant, double clock_variation) {
  SensorTiming out{time_constant, 0, 0, 0};
  if (table.empty()) return out;
  const Columns columns(table);
  const Timings timings(table, columns.of_classes(), columns.count(), observed);
  timings.fit_offsets(out);
  if (time_constant > 0) {
    timings.fit_time_constant(out, clock_variation < kSteady);
    if (out.time_constant != time_constant) timings.fit_offsets(out);
  }
  return out;
}

SensorTiming fit_time_constant(const ActivityTable& table, std::span<const ObservedPower> observed,
                               double time_constant, double clock_variation) {
  SensorTiming out{time_constant, 0, 0, 0};
  if (table.empty() || time_constant <= 0) return out;
  const Columns columns(table);
  Timings(table, columns.of_classes(), columns.count(), observed)
      .fit_time_constant(out, clock_variation < kSteady);
  return out;
}

}  // namespace jouleprof::analysis
