#include "analysis/kernels/power_timing.h"

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

constexpr double kKnownRise = 0.07;         // of the rise: by so much boards differ, one sigma
constexpr double kSteady = 0.02;            // sway of power
constexpr double kLeastRiseSigma = 0.5e-3;  // seconds: no board rises by one time constant alone

// The rows of one recording under different timings.
class Timings {
 public:
  Timings(const ActivityTable& table, std::span<const std::uint32_t> column_of, std::size_t columns,
          std::span<const SeenPower> seen)
      : table_(table), column_of_(column_of), columns_(columns) {
    for (const SeenPower& s : seen) {
      const double begin = table.bins.front().begin;
      if (s.begin < begin - 1 || s.end > begin + kLookedAt) continue;
      (s.counter ? counter_ : samples_).push_back(s);
    }
    for (auto* kind : {&counter_, &samples_}) {
      if (kind->size() < kFewestRows) kind->clear();
    }
  }

  void fit_lateness(SensorTiming& timing) const {
    timing.counter_late = best_lateness(counter_, timing.rise);
    timing.samples_late = best_lateness(samples_, timing.rise);
  }

  // Keeps the lateness that was found.
  void fit_rise(SensorTiming& timing, bool steady) const {
    const double known = timing.rise;
    timing.rise_sigma = kKnownRise * known;
    if (!steady || (counter_.empty() && samples_.empty())) return;
    const auto unlikely = [&](double rise) {
      SensorTiming other = timing;
      other.rise = rise;
      double sum = 0;
      for (const auto* kind : {&counter_, &samples_}) {
        if (!kind->empty()) sum += static_cast<double>(kind->size()) * std::log(left(*kind, other));
      }
      return sum;
    };
    const double step = 0.1 * known;
    std::vector<double> found;
    for (int i = -4; i <= 4; ++i) found.push_back(unlikely(known + i * step));
    const auto least = static_cast<std::size_t>(
        std::min_element(found.begin() + 1, found.end() - 1) - found.begin());
    const double before = found[least - 1];
    const double after = found[least + 1];
    const double bend = before - 2 * found[least] + after;
    // At the end of the range, or flat: something else is wrong, or nothing tells.
    if (found[least] > std::min(before, after) || bend < kClear * 0.5) return;
    timing.rise = known + step * (static_cast<double>(least) - 4 + (before - after) / (2 * bend));
    timing.rise_sigma = std::max(kLeastRiseSigma, 2 * step * std::sqrt(2 / bend));
  }

 private:
  double left(std::span<const SeenPower> seen, const SensorTiming& timing) const {
    return std::max(left_over(power_rows(table_, column_of_, columns_, seen, timing)), 1e-12);
  }

  double best_lateness(std::span<const SeenPower> seen, double rise) const {
    if (seen.empty()) return 0;
    const auto squares = [&](double late) { return left(seen, {rise, late, late, 0}); };
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
    const double gain = static_cast<double>(seen.size()) * std::log(at_zero / least);
    return gain > kClear ? best : 0;
  }

  const ActivityTable& table_;
  std::span<const std::uint32_t> column_of_;
  std::size_t columns_;
  std::vector<SeenPower> counter_;
  std::vector<SeenPower> samples_;
};

}  // namespace

SensorTiming fit_timing(const ActivityTable& table, std::span<const SeenPower> seen, double rise,
                        double sway) {
  SensorTiming out{rise, 0, 0, 0};
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
  const Timings timings(table, column_of, columns, seen);
  timings.fit_lateness(out);
  if (rise > 0) {
    timings.fit_rise(out, sway < kSteady);
    if (out.rise != rise) timings.fit_lateness(out);
  }
  return out;
}

}  // namespace jouleprof::analysis
