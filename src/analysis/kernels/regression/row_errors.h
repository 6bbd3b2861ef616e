// Rows of a linear system with few factors that are not zero, and their sums.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "analysis/kernels/regression/power_rows.h"

namespace jouleprof::analysis {

struct Factor {
  Eigen::Index index = 0;
  double value = 0;
};
// In order of their indices; all other factors are zero.
using SparseRow = std::span<const Factor>;

// Adds `times` the row to a column.
template <class Column>
void add_row(SparseRow row, double times, Column&& to) {
  for (const auto& factor : row) to[factor.index] += times * factor.value;
}

// Adds weight x row x row' to the lower triangle.
void add_outer_product(SparseRow row, double weight, Eigen::MatrixXd& lower);

// The errors of the regression's rows: variance, correlation of neighbours, weights of outliers.

// Counter rows and sample rows each have a variance of their own. Their errors are first-order
// moving averages, MA(1) (Box and Jenkins 1970): a jittering timestamp makes neighbouring rows err
// in opposite directions. Rows beyond three sigma count less (weights of Huber 1964). `rows`
// outlives it.
class RowErrors {
 public:
  explicit RowErrors(const PowerRows& rows);

  // Measured minus modelled watts of each row; `watts`: idle first, then the columns.
  static Eigen::VectorXd residuals(const PowerRows& rows, const Eigen::VectorXd& watts);

  void set_watts(const Eigen::VectorXd& watts) { residuals_ = residuals(rows_, watts); }
  const Eigen::VectorXd& residuals() const { return residuals_; }

  // Estimates both variances and correlations from the residuals. The first estimate is robust
  // (median absolute deviation), because the first guess of the watts may be far from the truth.
  void estimate(bool first, double effective_parameters);

  struct Noise {
    double sigma = 5;   // watts
    double moving = 0;  // each error is e(i) + moving * e(i - 1) of independent e
  };
  // Of counter rows, of sample rows.
  const std::array<Noise, 2>& noise() const { return noise_; }
  void set_noise(const std::array<Noise, 2>& noise) { noise_ = noise; }

  // Calls use(row's index, whitened factors, whitened value of `value(i)`, weight) for each row:
  // its errors are then uncorrelated and of variance 1 / weight (generalised least squares, Aitken
  // 1936). Idle's factor is the first; few kernels run in the time of one row.
  template <class Value, class Use>
  void whitened(Value value, Use use) const;

 private:
  static constexpr double kOutlier = 3.0;  // sigmas
  // A factor of earlier rows below which it is zero: no sum with a factor of 1 keeps it.
  static constexpr double kForgotten = 1e-20;

  std::size_t kind_of(std::size_t row) const { return rows_.rows[row].counter ? 0 : 1; }
  // Row `i` plus `kept` times the one before, of which nothing is left where `kept` is 0.
  void whiten(std::size_t i, double kept, SparseRow before, std::vector<Factor>& out) const;

  const PowerRows& rows_;
  std::vector<std::size_t> neighbour_;  // 1 + the row before of the same kind; 0: none adjacent
  std::array<Noise, 2> noise_;
  Eigen::VectorXd residuals_;
};

template <class Value, class Use>
void RowErrors::whitened(Value value, Use use) const {
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

}  // namespace jouleprof::analysis
