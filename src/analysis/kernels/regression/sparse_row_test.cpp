#include <gtest/gtest.h>

#include <vector>

#include "analysis/kernels/regression/row_errors.h"

namespace jouleprof::analysis {
namespace {

// Rows shorter than, as long as, and longer than the columns that are added at once.
TEST(SparseRow, OuterProductIsThatOfTheDenseRow) {
  for (Eigen::Index size = 0; size <= 11; ++size) {
    std::vector<Factor> row;
    Eigen::VectorXd dense = Eigen::VectorXd::Zero(30);
    for (Eigen::Index i = 0; i < size; ++i) {
      row.push_back({2 * i + 1, 0.5 * static_cast<double>(i) - 1.25});
      dense[2 * i + 1] = row.back().value;
    }
    Eigen::MatrixXd sum = Eigen::MatrixXd::Constant(30, 30, 0.25);
    Eigen::MatrixXd expected = sum;
    add_outer_product(row, 2, sum);
    expected.triangularView<Eigen::Lower>() += 2 * dense * dense.transpose();
    EXPECT_EQ(sum, expected) << size;
  }
}

}  // namespace
}  // namespace jouleprof::analysis
