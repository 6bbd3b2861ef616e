#include "nvml_sim/core/curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

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

TEST(Curve, ConstantPowerTimesTime) {
  EXPECT_DOUBLE_EQ(constant(250).joules(1, 11), 2500);
  EXPECT_DOUBLE_EQ(constant(250).watts(-3), 250);
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
  const auto curve = piecewise({{10, 100}, {20, 300}}, false);
  EXPECT_DOUBLE_EQ(curve.watts(0), 100);
  EXPECT_DOUBLE_EQ(curve.watts(15), 200);
  EXPECT_DOUBLE_EQ(curve.watts(25), 300);
  EXPECT_NEAR(curve.joules(0, 30), 1000 + 2000 + 3000, 1e-9);
  EXPECT_NEAR(curve.joules(12, 14), 2 * 160, 1e-9);
}

TEST(Curve, SineIntegratesToItsMeanOverAPeriod) {
  const auto curve = sine(300, 200, 7, 1);
  EXPECT_NEAR(curve.joules(3, 10), 2100, 1e-9);
  EXPECT_NEAR(curve.joules(1, 4.5), 300 * 3.5 + 200 * 7 / std::numbers::pi, 1e-9);
  EXPECT_DOUBLE_EQ(curve.watts(1 + 7.0 / 4), 500);
}

TEST(Curve, TraceWithJumpsAndRepetition) {
  // 100 W, at 1 s a jump to 400 W, at 3 s down to 200 W at 4 s.
  const Corners corners{{0, 100}, {1, 100}, {1, 400}, {3, 400}, {4, 200}};
  const auto once = piecewise(corners, false);
  EXPECT_DOUBLE_EQ(once.watts(0.999), 100);
  EXPECT_DOUBLE_EQ(once.watts(1), 400);
  EXPECT_NEAR(once.joules(0, 4), 100 + 800 + 300, 1e-9);
  EXPECT_NEAR(once.joules(4, 6), 400, 1e-9);
  const auto repeated = piecewise(corners, true);
  EXPECT_NEAR(repeated.joules(0, 40), 12'000, 1e-9);
  EXPECT_NEAR(repeated.joules(-4, 0), 1200, 1e-9);
  EXPECT_DOUBLE_EQ(repeated.watts(8.5), 100);
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
  const auto curve = sum({constant(70), square(0, 300, 0.2, 0.4, 0.03), sine(50, 50, 1.7, 0.2),
                          piecewise({{1, 0}, {2, 90}}, false)});
  EXPECT_NEAR(curve.joules(0.123, 3.456), numeric(curve, 0.123, 3.456), 0.01);
  EXPECT_NEAR(curve.joules(0, 1) + curve.joules(1, 2.5), curve.joules(0, 2.5), 1e-9);
}

TEST(Curve, BreaksAreWhereTheFormulaChanges) {
  const auto curve = sum({square(0, 1, 1, 0.25, 0), piecewise({{0.5, 0}, {0.6, 1}}, false)});
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
