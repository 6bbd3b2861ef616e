// Rows of a linear system, and the errors of the rows.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "analysis/kernels/regression/power_rows.h"
#include "analysis/timeline/sensors/error_model.h"
#include "base/median.h"

namespace jouleprof::analysis {

// One factor of a row.
struct Factor {
  Eigen::Index index = 0;
  double value = 0;
};
// Few factors, in order of their indices; all other factors are zero.
using SparseRow = std::span<const Factor>;

// Adds `times` the row to a column.
template <class Column>
void add_row(SparseRow row, double times, Column&& to) {
  for (const auto& factor : row) to[factor.index] += times * factor.value;
}

// Adds weight x row x row' to the lower triangle.
// Four columns at a time, whose sums don't wait for each other.
inline void add_outer_product(SparseRow row, double weight, Eigen::MatrixXd& lower) {
  std::size_t a = 0;
  for (; a + 4 <= row.size(); a += 4) {
    for (std::size_t i = a; i < a + 4; ++i) {
      add_row(row.subspan(i, a + 4 - i), weight * row[i].value, lower.col(row[i].index));
    }
    double* const to0 = lower.col(row[a].index).data();
    double* const to1 = lower.col(row[a + 1].index).data();
    double* const to2 = lower.col(row[a + 2].index).data();
    double* const to3 = lower.col(row[a + 3].index).data();
    const double times0 = weight * row[a].value;
    const double times1 = weight * row[a + 1].value;
    const double times2 = weight * row[a + 2].value;
    const double times3 = weight * row[a + 3].value;
    for (const auto& [index, value] : row.subspan(a + 4)) {
      to0[index] += times0 * value;
      to1[index] += times1 * value;
      to2[index] += times2 * value;
      to3[index] += times3 * value;
    }
  }
  for (; a < row.size(); ++a) {
    add_row(row.subspan(a), weight * row[a].value, lower.col(row[a].index));
  }
}

// The errors of the regression's rows: variance, correlation of neighbours, weights of outliers.
// Counter rows and sample rows each have a variance of their own. Their errors are first-order
// moving averages, MA(1) (Box and Jenkins 1970): a jittering timestamp makes neighbouring rows err
// in opposite directions. Rows beyond three sigma count less (weights of Huber 1964). `rows`
// outlives it.
class RowErrors {
 public:
  explicit RowErrors(const PowerRows& rows) : rows_(rows) {
    neighbour_.assign(rows.rows.size(), 0);
    std::array<std::size_t, 2> last{};  // 1 + the last row of each kind
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      const std::size_t kind = kind_of(i);
      if (last[kind] > 0 && rows.rows[i].end - rows.rows[last[kind] - 1].end < kAdjacent[kind]) {
        neighbour_[i] = last[kind];
      }
      last[kind] = i + 1;
    }
  }

  // Measured minus modelled watts of each row; `watts`: idle first, then the columns.
  static Eigen::VectorXd residuals(const PowerRows& rows, const Eigen::VectorXd& watts) {
    VectorXd out(static_cast<Index>(rows.rows.size()));
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      double sum = watts[0];
      for (const auto& term : rows.of(i)) sum += term.share * watts[1 + term.column];
      out[static_cast<Index>(i)] = rows.rows[i].watts - sum;
    }
    return out;
  }

  void set_watts(const Eigen::VectorXd& watts) { residuals_ = residuals(rows_, watts); }
  const Eigen::VectorXd& residuals() const { return residuals_; }

  // Estimates both variances and correlations from the residuals. The first estimate is robust
  // (median absolute deviation), because the first guess of the watts may be far from the truth.
  void estimate(bool first, double effective_parameters) {
    for (std::size_t kind = 0; kind < 2; ++kind) {
      std::vector<double> sizes;
      double pairs = 0;
      double products = 0;
      double squares = 0;
      const double limit = first ? 1e300 : kOutlier * noise_[kind].sigma;
      for (std::size_t i = 0; i < rows_.rows.size(); ++i) {
        if (kind_of(i) != kind) continue;
        const double e = std::clamp(residuals_[static_cast<Index>(i)], -limit, limit);
        sizes.push_back(std::abs(e));
        squares += e * e;
        if (neighbour_[i] == 0) continue;
        const double f =
            std::clamp(residuals_[static_cast<Index>(neighbour_[i] - 1)], -limit, limit);
        products += e * f;
        pairs += 1;
      }
      if (sizes.empty()) continue;
      const double count = static_cast<double>(sizes.size());
      if (first) {
        noise_[kind] = {std::max(1.48 * upper_median(sizes), 0.5), 0};
        continue;
      }
      const double freedom = std::max(count - effective_parameters, 0.1 * count);
      noise_[kind].sigma =
          std::max(std::sqrt(squares / freedom), kErrors.least_row_noise * mean_watts(rows_));
      const double correlation =
          pairs > 30 && squares > 0 ? products / pairs / (squares / count) : 0;
      // Only a correlation that exceeds its 95 % limit for independent errors (Bartlett 1946).
      noise_[kind].moving =
          std::abs(correlation) > 2 / std::sqrt(pairs + 1) ? moving_average(correlation) : 0;
    }
  }

  struct Noise {
    double sigma = 5;   // watts
    double moving = 0;  // each error is e(i) + moving * e(i - 1) of independent e
  };
  // The noise of counter rows, and of sample rows.
  const std::array<Noise, 2>& noise() const { return noise_; }
  void set_noise(const std::array<Noise, 2>& noise) { noise_ = noise; }

  // Calls use(row's index, whitened factors, whitened value of `value(i)`, weight) for each row:
  // its errors are then uncorrelated and of variance 1 / weight (generalised least squares, Aitken
  // 1936). Idle's factor is the first; few kernels run in the time of one row.
  template <class Value, class Use>
  void whitened(Value value, Use use) const {
    std::array<std::vector<Factor>, 2> last_row;
    std::array<double, 2> last_value{};
    std::array<std::size_t, 2> last_index{};
    std::vector<Factor> row;
    for (std::size_t i = 0; i < rows_.rows.size(); ++i) {
      const std::size_t kind = kind_of(i);
      const Noise& noise = noise_[kind];
      const bool linked =
          neighbour_[i] != 0 && neighbour_[i] == last_index[kind] && noise.moving != 0;
      const double kept = linked ? -noise.moving : 0.0;
      whiten(i, kept, last_row[kind], row);
      last_row[kind].swap(row);
      last_value[kind] = value(i) + kept * last_value[kind];
      last_index[kind] = i + 1;
      // The variance of a counter's row decreases with the number of updates that it spans.
      const double steps =
          kind == 0 ? std::max((rows_.rows[i].end - rows_.rows[i].begin) / 0.1, 0.2) : 1.0;
      const double doubt = rows_.rows[i].doubt;
      const double own =
          noise.sigma * noise.sigma / (1 + noise.moving * noise.moving) / steps + doubt * doubt;
      const double size =
          std::abs(residuals_[static_cast<Eigen::Index>(i)]) / std::hypot(noise.sigma, doubt);
      use(i, SparseRow(last_row[kind]), last_value[kind], 1 / own / std::max(1.0, size / kOutlier));
    }
  }

 private:
  using Index = Eigen::Index;
  using VectorXd = Eigen::VectorXd;

  static constexpr std::array kAdjacent{0.11,
                                        0.03};  // seconds between the ends of neighbouring rows

  // The coefficient of an invertible MA(1) process whose neighbours have the correlation r.
  static double moving_average(double r) {
    r = std::clamp(r, -0.45, 0.45);
    return std::abs(r) < 0.02 ? 0.0 : (1 - std::sqrt(1 - 4 * r * r)) / (2 * r);
  }

  static double mean_watts(const PowerRows& rows) {
    double sum = 0;
    for (const auto& row : rows.rows) sum += row.watts;
    return sum / static_cast<double>(rows.rows.size());
  }

  static constexpr double kOutlier = 3.0;  // sigmas
  // A factor of earlier rows below which it is zero: no sum with a factor of 1 keeps it.
  static constexpr double kForgotten = 1e-20;

  std::size_t kind_of(std::size_t row) const { return rows_.rows[row].counter ? 0 : 1; }
  // Row `i` plus `kept` times the one before, of which nothing is left where `kept` is 0.
  void whiten(std::size_t i, double kept, SparseRow before, std::vector<Factor>& out) const {
    const auto left_of = [kept](const Factor& factor) {
      const double left = kept * factor.value;
      return std::abs(left) < kForgotten ? 0.0 : left;
    };
    out.clear();
    out.push_back({0, before.empty() ? 1 : 1 + left_of(before.front())});
    auto old = before.empty() ? before.begin() : before.begin() + 1;
    const auto keep_before = [&](Index index) {
      for (; old != before.end() && old->index < index; ++old) {
        if (const double left = left_of(*old); left != 0) out.push_back({old->index, left});
      }
    };
    for (const auto& term : rows_.of(i)) {
      const Index index = 1 + static_cast<Index>(term.column);
      keep_before(index);
      const bool again = old != before.end() && old->index == index;
      out.push_back({index, again ? left_of(*old++) + term.share : term.share});
    }
    keep_before(static_cast<Index>(rows_.columns) + 1);
  }

  const PowerRows& rows_;
  std::vector<std::size_t> neighbour_;  // 1 + the row before of the same kind; 0: none adjacent
  std::array<Noise, 2> noise_;
  Eigen::VectorXd residuals_;
};

}  // namespace jouleprof::analysis
