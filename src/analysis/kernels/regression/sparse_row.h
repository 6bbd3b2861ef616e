// Rows of a linear system with few factors that are not zero, and their sums.
#pragma once

#include <Eigen/Core>
#include <span>

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

}  // namespace jouleprof::analysis
