#include "nvml_sim/core/curve.h"

#include <gtest/gtest.h>

#include <vector>

namespace jouleprof::nvml_sim {
namespace {

// Midpoint sums over fine steps: slow, and independent of the closed forms.
double numeric(const Curve& curve, double begin, double end) {
  constexpr int kSteps = 400'000;
  const double step = (end - begin) / kSteps;
  double joules = 0;
  for (int i = 0; i < kSteps; ++i) joules += curve.watts(begin + (i + 0.5) * step) * step;
  return joules;
}

TEST(Curve, SquareIsHighForItsDuty) {
  const auto curve = square(100, 600, 0.1, 0.3, 0);
  EXPECT_DOUBLE_EQ(curve.watts(0.0299), 600);
  EXPECT_DOUBLE_EQ(curve.watts(0.0301), 100);
  EXPECT_NEAR(curve.joules(0, 10), 10 * (0.3 * 600 + 0.7 * 100), 1e-9);
  EXPECT_NEAR(curve.joules(0.01, 0.05), 0.02 * 600 + 0.02 * 100, 1e-12);
  EXPECT_NEAR(curve.joules(-10, 0), 2500, 1e-9);
  // A year after its start it is exact to the resolution of a double.
  EXPECT_NEAR(curve.joules(3e7, 3e7 + 1), 250, 1e-3);
}

TEST(Curve, SquareBeginsAtItsPhase) {
  const auto curve = square(0, 1, 1, 0.5, 0.25);
  EXPECT_DOUBLE_EQ(curve.watts(0.2), 0);
  EXPECT_DOUBLE_EQ(curve.watts(0.3), 1);
  EXPECT_NEAR(curve.joules(0, 0.5), 0.25, 1e-12);
}

TEST(Curve, RampHoldsBeforeAndAfter) {
  const auto curve = ramp(100, 300, 10);
  EXPECT_DOUBLE_EQ(curve.watts(-10), 100);
  EXPECT_DOUBLE_EQ(curve.watts(5), 200);
  EXPECT_DOUBLE_EQ(curve.watts(15), 300);
  EXPECT_NEAR(curve.joules(-10, 20), 1000 + 2000 + 3000, 1e-9);
  EXPECT_NEAR(curve.joules(2, 4), 2 * 160, 1e-9);
}

TEST(Curve, IsZeroOutsideOfBetween) {
  const auto curve = between(constant(200), 5, 10);
  EXPECT_DOUBLE_EQ(curve.watts(4.9), 0);
  EXPECT_DOUBLE_EQ(curve.watts(5), 200);
  EXPECT_DOUBLE_EQ(curve.watts(10), 0);
  EXPECT_DOUBLE_EQ(curve.joules(0, 6), 200);
  EXPECT_DOUBLE_EQ(curve.joules(0, 100), 1000);
  EXPECT_DOUBLE_EQ(curve.joules(20, 30), 0);
}

TEST(Curve, SumsAddUp) {
  const auto curve = sum({constant(70), square(0, 300, 0.2, 0.4, 0.03), ramp(0, 90, 2)});
  EXPECT_NEAR(curve.joules(0.123, 3.456), numeric(curve, 0.123, 3.456), 0.01);
  EXPECT_NEAR(curve.joules(0, 1) + curve.joules(1, 2.5), curve.joules(0, 2.5), 1e-9);
}

TEST(Curve, BreaksAreWhereTheFormulaChanges) {
  const auto curve = sum({square(0, 1, 1, 0.25, 0), between(constant(1), 0.5, 0.6)});
  std::vector<double> breaks;
  for (double t = 0; (t = curve.next_break(t)) < 1.3;) breaks.push_back(t);
  ASSERT_EQ(breaks.size(), 5U);
  EXPECT_DOUBLE_EQ(breaks[0], 0.25);
  EXPECT_DOUBLE_EQ(breaks[1], 0.5);
  EXPECT_DOUBLE_EQ(breaks[2], 0.6);
  EXPECT_DOUBLE_EQ(breaks[3], 1);
  EXPECT_DOUBLE_EQ(breaks[4], 1.25);
}

}  // namespace
}  // namespace jouleprof::nvml_sim
