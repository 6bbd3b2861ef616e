#include "nvml_sim/core/sensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace jouleprof::nvml_sim {
namespace {

constexpr std::uint64_t kStream = 256;

// 100 W, from 1 s on 500 W.
const EnergyBetween kStep = sum({constant(100), between(constant(400), 1, kForever)}).joules;

TEST(Ring, AveragesItsWindowBeforeItsLag) {
  const auto ring = ring_at({0.02, 0.025, 0.005, 0}, kStep, 1.05);
  ASSERT_EQ(ring.size(), 120U);
  EXPECT_NEAR(ring.back().stamp, 1.04, 1e-9);
  EXPECT_NEAR(ring.back().watts, 500, 1e-9);
  // The sample at 1.02 means [0.99, 1.015]: 10 of its 25 ms lie before the step.
  EXPECT_NEAR(ring[118].stamp, 1.02, 1e-9);
  EXPECT_NEAR(ring[118].watts, (10 * 100 + 15 * 500) / 25.0, 1e-6);
  EXPECT_NEAR(ring.front().stamp, 1.04 - 119 * 0.02, 1e-9);
}

TEST(Ring, RespondsToAStepWithItsTimeConstant) {
  for (const auto& sample : ring_at({0.02, 0.001, 0, 0.014}, kStep, 1.2)) {
    const double since = sample.stamp - 0.0005 - 1;
    const double expected = since > 0 ? 500 - 400 * std::exp(-since / 0.014) : 100;
    EXPECT_NEAR(sample.watts, expected, 12) << sample.stamp;
  }
}

TEST(Ring, HoldsNoSampleFromBeforeItWasEmptied) {
  const auto ring = ring_at(RingSpec{}, constant(250).joules, 10.11, 10);
  ASSERT_EQ(ring.size(), 5U);
  EXPECT_GT(ring.front().stamp, 10);
}

TEST(Counter, LagsByItsTimeConstantAndLosesNothing) {
  const auto millijoules = [&](double t) {
    return double(counter_at(0.014, kStep, kStream, t, 0, 0));
  };
  EXPECT_NEAR(millijoules(1.99), (100 + 0.937 * 500 - 0.014 * 400) * 1e3, 30);
  EXPECT_NEAR(millijoules(2.99) - millijoules(1.99), 500e3, 2);
}

TEST(Counter, DelaysEachUpdateByItsOwnAmount) {
  const auto energy = constant(250).joules;
  double least = 1, most = 0;
  for (int k = 1; k <= 300; ++k) {
    // Finds, in steps of 10 us, when the update is visible.
    const double edge = 0.037 + k * 0.1;
    double delay = 0;
    while (double(counter_at(0, energy, kStream, edge + delay, 0, 0)) < 250e3 * edge - 1) {
      delay += 1e-5;
      ASSERT_LT(delay, 0.02);
    }
    least = std::min(least, delay);
    most = std::max(most, delay);
  }
  EXPECT_GE(least, 0.0003 - 1e-9);
  EXPECT_LT(least, 0.001);
  EXPECT_LE(most, 0.01602);
  EXPECT_GT(most, 0.015);
}

TEST(Counter, StartsAtItsOrigin) {
  const auto energy = constant(250).joules;
  EXPECT_EQ(counter_at(0, energy, kStream, 5.26, 5.137, 0), 25'000U);
  EXPECT_EQ(counter_at(0, energy, kStream, 5.16, 5.15, 0), 0U);
  EXPECT_EQ(counter_at(0, energy, kStream, 5.16, 5.137, 3), 3'000U);
}

TEST(Polled, HoldsTheMeanOfItsWindowUntilItsRenewal) {
  const auto energy = square(100, 600, 0.1, 0.3, 0.08).joules;
  // Each window is [0.075, 0.1] of a period: 5 ms low, 20 ms high.
  const auto a = polled_at(PolledSpec{}, energy, 2.3001);
  const auto b = polled_at(PolledSpec{}, energy, 2.3999);
  EXPECT_NEAR(a.watts, (5 * 100 + 20 * 600) / 25.0, 1e-6);
  EXPECT_EQ(a.watts, b.watts);
  EXPECT_NEAR(a.renewed, 2.3, 1e-9);
  EXPECT_NEAR(polled_at({0.1, 1}, kStep, 1.45).watts, 100 + 400 * 0.4, 1e-6);
}

}  // namespace
}  // namespace jouleprof::nvml_sim
