#include "analysis/power_timing.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace jouleprof::analysis {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t kMostColumns = 40;
constexpr std::size_t kFewestRows = 100;
constexpr double kLookedAt = 120;    // seconds
constexpr double kClear = 20;        // of twice the log-likelihood
constexpr double kPriorWatts = 200;  // a wide prior, so that nothing is singular

// The mean square that a regression leaves.
double left_over(const PowerRows& rows) {
  const auto n = static_cast<Index>(rows.columns + 1);
  MatrixXd normal = MatrixXd::Zero(n, n);
  VectorXd right = VectorXd::Zero(n);
  double mean = 0;
  for (const auto& row : rows.rows) mean += row.watts;
  mean /= static_cast<double>(rows.rows.size());
  VectorXd factors(n);
  const auto fill = [&](std::size_t i) {
    factors.setZero();
    factors[0] = 1;
    for (const auto& term : rows.of(i)) factors[1 + term.column] = term.share;
  };
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    fill(i);
    normal.selfadjointView<Eigen::Lower>().rankUpdate(factors);
    right += (rows.rows[i].watts - mean) * factors;
  }
  for (Index k = 0; k < n; ++k) normal(k, k) += 25 / (kPriorWatts * kPriorWatts);
  const VectorXd watts = normal.selfadjointView<Eigen::Lower>().ldlt().solve(right);
  double squares = 0;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    fill(i);
    const double e = rows.rows[i].watts - mean - factors.dot(watts);
    squares += e * e;
  }
  return squares / static_cast<double>(rows.rows.size());
}

double best_lateness(const ActivityTable& table, std::span<const std::uint32_t> column_of,
                     std::size_t columns, std::span<const SeenPower> seen, double rise) {
  if (seen.size() < kFewestRows) return 0;
  const auto squares = [&](double late) {
    return left_over(power_rows(table, column_of, columns, seen, {rise, late, late}));
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
  const double gain = static_cast<double>(seen.size()) * std::log(at_zero / std::max(least, 1e-12));
  return gain > kClear ? best : 0;
}

}  // namespace

SensorTiming fit_timing(const ActivityTable& table, std::span<const SeenPower> seen, double rise) {
  SensorTiming out{rise, 0, 0};
  if (table.empty()) return out;
  std::vector<std::uint32_t> order(table.classes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return table.classes[a].whole_busy > table.classes[b].whole_busy;
  });
  const std::size_t own = std::min(order.size(), kMostColumns);
  std::vector<std::uint32_t> column_of(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    column_of[order[i]] = static_cast<std::uint32_t>(std::min(i, own));
  }
  const std::size_t columns = own + 2;  // the rest, and time between launches

  std::vector<SeenPower> counter;
  std::vector<SeenPower> samples;
  for (const SeenPower& s : seen) {
    const double begin = table.bins.front().begin;
    if (s.begin < begin - 1 || s.end > begin + kLookedAt) continue;
    (s.counter ? counter : samples).push_back(s);
  }
  out.counter_late = best_lateness(table, column_of, columns, counter, rise);
  out.samples_late = best_lateness(table, column_of, columns, samples, rise);
  return out;
}

}  // namespace jouleprof::analysis
