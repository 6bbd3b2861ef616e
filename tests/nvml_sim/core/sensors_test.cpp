#include "nvml_sim/core/sensors.h"

#include <gtest/gtest.h>

#include <cmath>

namespace jouleprof::nvml_sim {
namespace {

EnergyBetween of(const Curve& curve) { return curve.joules; }

const Noise kNoise(7, 1);

TEST(Ring, AveragesItsWindowBeforeItsLag) {
  RingSpec spec;
  spec.refresh = 0.02;
  spec.window = 0.025;
  spec.lag = 0.005;
  spec.phase = 0.003;
  // 100 W, from 1 s on 500 W.
  const auto energy = of(piecewise({{1, 100}, {1, 500}}, false));
  const auto ring = ring_at(spec, energy, kNoise, 1.05);
  ASSERT_EQ(ring.size(), 120U);
  EXPECT_NEAR(ring.back().stamp, 1.043, 1e-9);
  EXPECT_NEAR(ring.back().watts, 500, 1e-9);
  // The sample at 1.023 means [0.993, 1.018]: 7 of its 25 ms lie before the step.
  EXPECT_NEAR(ring[118].stamp, 1.023, 1e-9);
  EXPECT_NEAR(ring[118].watts, (7 * 100 + 18 * 500) / 25.0, 1e-6);
  EXPECT_NEAR(ring.front().stamp, 1.043 - 119 * 0.02, 1e-9);
}

TEST(Ring, RespondsToAStepWithItsTimeConstant) {
  RingSpec spec;
  spec.window = 0.001;
  spec.rise = 0.014;
  const auto energy = of(piecewise({{1, 100}, {1, 500}}, false));
  for (const auto& sample : ring_at(spec, energy, kNoise, 1.2)) {
    const double since = sample.stamp - 0.0005 - 1;
    const double expected = since > 0 ? 500 - 400 * std::exp(-since / 0.014) : 100;
    EXPECT_NEAR(sample.watts, expected, 12) << sample.stamp;
  }
}

TEST(Counter, LagsByItsTimeConstantAndLosesNothing) {
  CounterSpec spec;
  spec.rise = 0.014;
  const auto energy = of(piecewise({{1, 100}, {1, 500}}, false));
  const auto millijoules = [&](double t) {
    return double(counter_at(spec, energy, kNoise, t, 0, 0));
  };
  EXPECT_NEAR(millijoules(1.95), (100 + 450 - 0.014 * 400) * 1e3, 30);  // at the edge of 1.9 s
  EXPECT_NEAR(millijoules(2.95) - millijoules(1.95), 500e3, 2);
}

TEST(Ring, KeepsJitteredStampsInOrder) {
  RingSpec spec;
  spec.jitter = 0.009;
  const auto ring = ring_at(spec, of(constant(250)), kNoise, 100);
  double spread = 0;
  for (std::size_t i = 1; i < ring.size(); ++i) {
    EXPECT_GT(ring[i].stamp, ring[i - 1].stamp);
    EXPECT_LE(ring[i].stamp, 100);
    spread = std::max(spread, std::abs(ring[i].stamp - ring[i - 1].stamp - 0.02));
    EXPECT_NEAR(ring[i].watts, 250, 1e-9);
  }
  EXPECT_GT(spread, 0.005);
}

TEST(Ring, RepeatsASamplesValue) {
  RingSpec spec;
  spec.jitter = 0.004;
  spec.noise_watts = 3;
  const auto energy = of(sine(300, 200, 1.3, 0));
  const auto early = ring_at(spec, energy, Noise(7, 1), 10);
  const auto late = ring_at(spec, energy, Noise(7, 1), 11);
  const auto other = ring_at(spec, energy, Noise(8, 1), 10);
  int common = 0;
  for (const auto& a : early) {
    for (const auto& b : late) {
      if (a.stamp != b.stamp) continue;
      EXPECT_EQ(a.watts, b.watts);
      ++common;
    }
  }
  EXPECT_NEAR(common, 70, 1);
  EXPECT_NE(early.back().watts, other.back().watts);
}

TEST(Ring, HasItsGainErrorAndNoise) {
  RingSpec spec;
  spec.capacity = 20'000;
  spec.gain_error = 0.04;
  spec.noise_watts = 5;
  const auto ring = ring_at(spec, of(constant(500)), kNoise, 0);
  double sum = 0;
  double squares = 0;
  for (const auto& s : ring) {
    sum += s.watts - 520;
    squares += (s.watts - 520) * (s.watts - 520);
  }
  EXPECT_NEAR(sum / 20'000, 0, 0.15);
  EXPECT_NEAR(std::sqrt(squares / 20'000), 5, 0.15);
}

TEST(Ring, HoldsNoSampleFromBeforeItWasEmptied) {
  const auto ring = ring_at(RingSpec{}, of(constant(250)), kNoise, 10.1, 10);
  ASSERT_EQ(ring.size(), 5U);
  EXPECT_GT(ring.front().stamp, 10);
}

TEST(Counter, ChangesAtItsUpdatesOnly) {
  CounterSpec spec;
  spec.phase = 0.037;
  const auto energy = of(constant(250));
  const auto at = [&](double t) { return counter_at(spec, energy, kNoise, t, 0, 0); };
  EXPECT_EQ(at(0.0371), 9250U);
  EXPECT_EQ(at(0.1369), 9250U);
  EXPECT_EQ(at(0.1371), 34'250U);
  EXPECT_EQ(at(3600.04), 900'009'250U);
}

TEST(Counter, DelaysEachUpdateByItsOwnAmount) {
  CounterSpec spec;
  spec.delay_min = 0.0003;
  spec.delay_max = 0.016;
  const auto energy = of(constant(250));
  double least = 1;
  double most = 0;
  for (int k = 1; k <= 300; ++k) {
    // Finds, in steps of 10 us, when the update is visible.
    const double edge = k * 0.1;
    double delay = 0;
    while (counter_at(spec, energy, kNoise, edge + delay, 0, 0) <
           25'000U * static_cast<unsigned>(k) - 1) {
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

TEST(Counter, NeverFalls) {
  CounterSpec spec;
  spec.delay_max = 0.09;
  const auto energy = of(sine(300, 300, 0.7, 0));
  std::uint64_t last = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto now = counter_at(spec, energy, kNoise, i * 1e-3, 0, 1000);
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(Counter, CountsInItsQuantumWithItsGainError) {
  CounterSpec spec;
  spec.quantum_mj = 15;
  spec.gain_error = -0.1;
  // 1 s of 250 W, read 10 % low, on 3 J: 228 J.
  EXPECT_EQ(counter_at(spec, of(constant(250)), kNoise, 1.05, 0, 3), 228'000U);
  // 228.108 J: down to a whole quantum.
  EXPECT_EQ(counter_at(spec, of(constant(250.12)), kNoise, 1.05, 0, 3), 228'105U);
}

TEST(Counter, StartsAtItsOrigin) {
  EXPECT_EQ(counter_at(CounterSpec{}, of(constant(250)), kNoise, 5.25, 5.1, 0), 25'000U);
  EXPECT_EQ(counter_at(CounterSpec{}, of(constant(250)), kNoise, 5.15, 5.12, 0), 0U);
}

TEST(Polled, HoldsTheMeanOfItsWindowUntilItsRenewal) {
  PolledSpec spec;
  spec.refresh = 0.1;
  spec.window = 0.025;
  const auto energy = of(square(100, 600, 0.1, 0.3, 0.08));
  // Each window is [0.075, 0.1] of a period: 5 ms low, 20 ms high.
  const auto a = polled_at(spec, energy, kNoise, 2.3001);
  const auto b = polled_at(spec, energy, kNoise, 2.3999);
  EXPECT_NEAR(a.watts, (5 * 100 + 20 * 600) / 25.0, 1e-6);
  EXPECT_EQ(a.watts, b.watts);
  EXPECT_NEAR(a.renewed, 2.3, 1e-9);
}

TEST(Polled, AveragesAStepOverItsWindow) {
  PolledSpec spec;
  spec.window = 1;
  const auto energy = of(piecewise({{1, 100}, {1, 500}}, false));
  EXPECT_NEAR(polled_at(spec, energy, kNoise, 1.45).watts, 100 + 400 * 0.4, 1e-6);
  EXPECT_NEAR(polled_at(spec, energy, kNoise, 2.05).watts, 500, 1e-6);
}

}  // namespace
}  // namespace jouleprof::nvml_sim
