#include "analysis/timeline/banded_system.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace jouleprof::analysis {
namespace {

// The row's factors differ, so that a wrong place of one changes the solution.
std::vector<double> factors(std::size_t size, std::size_t seed) {
  std::vector<double> out;
  for (std::size_t i = 0; i < size; ++i) out.push_back(std::sin(1.0 + 2.3 * double(seed + 7 * i)));
  return out;
}

double product(const std::vector<double>& row, const std::vector<double>& x, std::size_t first) {
  double sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) sum += row[i] * x[first + i];
  return sum;
}

// Rows that one solution satisfies exactly have it as their least squares.
TEST(BandedSystem, FindsTheSolutionOfConsistentRows) {
  for (const std::size_t band : {1U, 2U, 7U, 8U, 9U, 19U}) {
    constexpr std::size_t kUnknowns = 40;
    std::vector<double> x;
    for (std::size_t i = 0; i < kUnknowns; ++i) x.push_back(100 + 10 * std::cos(double(i)));
    BandedSystem system(kUnknowns, band);
    for (std::size_t first = 0; first + band < kUnknowns; ++first) {
      const auto row = factors(band + 1, first);
      system.add(first, row, product(row, x, first), 2.0);
    }
    for (int round = 0; round < 2; ++round) {
      system.reset_near();
      for (std::size_t i = 0; i + 1 < kUnknowns; ++i) {
        system.add_near(i, std::array{-1.0, 0.5}, -x[i] + 0.5 * x[i + 1], 1.0 + round);
      }
      system.add_near(kUnknowns - 1, std::array{1.0}, x.back(), 3.0);
      const auto found = system.solve();
      ASSERT_EQ(found.size(), x.size());
      for (std::size_t i = 0; i < kUnknowns; ++i) EXPECT_NEAR(found[i], x[i], 1e-8) << band;
    }
  }
}

TEST(BandedSystem, ForgetsTheRowsOfTheSolutionBefore) {
  BandedSystem system(4, 2);
  for (std::size_t i = 0; i < 4; ++i) system.add(i, std::array{1.0}, 1.0, 1.0);
  for (const double value : {5.0, 9.0}) {
    system.reset_near();
    system.add_near(1, std::array{1.0}, value, 1.0);
    const auto found = system.solve();
    EXPECT_NEAR(found[0], 1, 1e-12);
    EXPECT_NEAR(found[1], 0.5 * (1 + value), 1e-12);
  }
}

}  // namespace
}  // namespace jouleprof::analysis
