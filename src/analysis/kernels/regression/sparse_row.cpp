#include "analysis/kernels/regression/sparse_row.h"

#include <cstddef>

namespace jouleprof::analysis {

// Four columns at a time, whose sums don't wait for each other.
void add_outer_product(SparseRow row, double weight, Eigen::MatrixXd& lower) {
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

}  // namespace jouleprof::analysis
