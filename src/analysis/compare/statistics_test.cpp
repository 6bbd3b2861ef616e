#include "analysis/compare/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace jouleprof::analysis {
namespace {

// Expected values: scipy 1.17, ttest_1samp and ttest_ind.
TEST(Statistics, PairsAreTestedAsOneSample) {
  const double differences[] = {0.031, 0.012, 0.045, -0.008, 0.027, 0.019};
  const Estimate estimate = estimate_of_pairs(differences);
  EXPECT_NEAR(estimate.mean, 0.021, 1e-15);
  ASSERT_TRUE(estimate.half);
  EXPECT_NEAR(*estimate.half, 0.018994495180557017, 1e-12);
  EXPECT_NEAR(p_value(estimate), 0.03616177091465781, 1e-12);
}

TEST(Statistics, UnitsOfBothSidesAreTestedByWelch) {
  const double before[] = {1.00, 1.03, 0.98, 1.01};
  const double after[] = {1.10, 1.05, 1.19};
  const Estimate estimate = estimate_of_units(before, after);
  EXPECT_NEAR(estimate.mean, 0.10833333333333339, 1e-12);
  EXPECT_NEAR(estimate.degrees, 2.26033403493426, 1e-9);
  ASSERT_TRUE(estimate.half);
  EXPECT_NEAR(*estimate.half, 0.1631740113935063, 1e-9);
  EXPECT_NEAR(p_value(estimate), 0.11017540828379714, 1e-9);
}

TEST(Statistics, OneUnitUsesTheSpreadOfTheOtherSide) {
  const double before[] = {1.00, 1.03, 0.98, 1.01};
  const double after[] = {1.10};
  const Estimate estimate = estimate_of_units(before, after);
  EXPECT_EQ(estimate.degrees, 3);
  ASSERT_TRUE(estimate.half);
  EXPECT_NEAR(*estimate.half, 0.07406740688897887, 1e-12);
  EXPECT_NEAR(p_value(estimate), 0.026558632490211453, 1e-12);
}

TEST(Statistics, OneUnitOfEachSideHasNoInterval) {
  const double before[] = {1};
  const double after[] = {2};
  const Estimate estimate = estimate_of_units(before, after);
  EXPECT_EQ(estimate.mean, 1);
  EXPECT_FALSE(estimate.half);
  EXPECT_TRUE(std::isinf(estimate.low()) && std::isinf(estimate.high()));
  EXPECT_EQ(p_value(estimate), 1);
  EXPECT_FALSE(estimate_of_pairs(before).half);
}

TEST(Statistics, AKnownSpreadNeedsNoRepeats) {
  const double before[] = {1, 1};
  const double after[] = {1.1, 1.1, 1.1};
  EXPECT_NEAR(*estimate_with_spread(before, after, 0.02).half, 0.035783882874343136, 1e-12);
}

// Two pairs, as far apart as the sensors' noise alone explains: a difference of five half-widths
// of the noise is none of Student's t with one degree of freedom.
TEST(Statistics, KnownNoiseIsNormalAlsoWithFewRuns) {
  const double differences[] = {0.00499, 0.00501};
  Estimate estimate = estimate_of_pairs(differences);
  EXPECT_NEAR(p_value(estimate), 0.00127, 1e-5);
  const double alone = *estimate.half;
  add_sensors(estimate, 0.001, 0);
  EXPECT_DOUBLE_EQ(*estimate.half, 0.001);
  EXPECT_LT(alone, 0.001);
  EXPECT_NEAR(p_value(estimate), 0.00127, 1e-5);  // the spread's, which is the greater one
  estimate.spread = 0;
  EXPECT_LT(p_value(estimate), 1e-20);
}

TEST(Statistics, PAndIntervalAgreeAboutZero) {
  for (const double mean : {0.5, 0.95, 1.05, 2.0}) {
    for (const double spread : {0.0, 0.3, 1.0}) {
      for (const double calibration : {0.0, 0.5}) {
        Estimate estimate{mean, 0};
        estimate.degrees = 2;
        estimate.spread = spread / 4.302653;
        add_sensors(estimate, 0.9, calibration);
        EXPECT_EQ(p_value(estimate) < 0.05, estimate.low() > 0)
            << mean << ' ' << spread << ' ' << calibration;
      }
    }
  }
}

TEST(Statistics, EqualUnitsHaveNoSpread) {
  const double before[] = {1, 1};
  const double after[] = {1, 1};
  const Estimate estimate = estimate_of_units(before, after);
  EXPECT_EQ(*estimate.half, 0);
  EXPECT_EQ(p_value(estimate), 1);
  const double higher[] = {2, 2};
  EXPECT_EQ(p_value(estimate_of_units(before, higher)), 0);
}

TEST(Statistics, HolmStepsDown) {
  EXPECT_EQ(holm_adjusted({}), std::vector<double>{});
  const auto adjusted = holm_adjusted({0.01, 0.04, 0.03, 0.005});
  const double expected[] = {0.03, 0.06, 0.06, 0.02};
  ASSERT_EQ(adjusted.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(adjusted[i], expected[i]) << i;
  EXPECT_EQ(holm_adjusted({0.7, 0.9}), (std::vector<double>{1, 1}));
}

}  // namespace
}  // namespace jouleprof::analysis
