#include <gtest/gtest.h>

#include "analysis/kernels/remembered_kernels.h"

namespace jouleprof::analysis {
namespace {

// A solution for idle power and two kernels at 300 W each, of which only the sum is known where
// they are collinear.
PowerSolution solved(double a, double b, bool collinear) {
  PowerSolution own;
  own.watts = Eigen::Vector3d{100, a, b};
  own.covariance = Eigen::Matrix3d::Zero();
  own.covariance(1, 1) = own.covariance(2, 2) = collinear ? 100 * 100 : 2 * 2;
  if (collinear) own.covariance(1, 2) = own.covariance(2, 1) = -100 * 100 + 2;
  own.robust = own.covariance;
  return own;
}

std::vector<KnownPower> known(double a, double b) {
  return {{{1}, a, 0.05 * a}, {{2}, b, 0.05 * b}};
}

TEST(MemoryCheck, AgreeingPowersAreKept) {
  EXPECT_TRUE(contradicted(solved(300, 300, false), known(310, 285), 0.035).empty());
  // The readings say nothing of the division.
  EXPECT_TRUE(contradicted(solved(300, 300, true), known(400, 200), 0.035).empty());
}

TEST(MemoryCheck, OnlyTheKernelThatChangedIsRemoved) {
  EXPECT_EQ(contradicted(solved(390, 300, false), known(300, 300), 0.035),
            std::vector<std::size_t>{0});
}

TEST(MemoryCheck, OfCollinearKernelsAllThatMayHaveChangedAreRemoved) {
  EXPECT_EQ(contradicted(solved(390, 300, true), known(300, 300), 0.035),
            (std::vector<std::size_t>{0, 1}));
}

}  // namespace
}  // namespace jouleprof::analysis
