#include "nvml_sim/core/limited_power.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace jouleprof::nvml_sim {
namespace {

double numeric(const LimitedPower& power, double begin, double end) {
  constexpr int kSteps = 400'000;
  const double step = (end - begin) / kSteps;
  double joules = 0;
  for (int i = 0; i < kSteps; ++i) joules += power.watts(begin + (i + 0.5) * step) * step;
  return joules;
}

TEST(LimitedPower, IsTheDemandBelowTheLimit) {
  const LimitedPower power(constant(250), 700);
  EXPECT_DOUBLE_EQ(power.joules(0, 100), 25'000);
}

TEST(LimitedPower, IsTheLimitAboveIt) {
  const LimitedPower power(constant(650), 300);
  EXPECT_DOUBLE_EQ(power.watts(1), 300);
  EXPECT_DOUBLE_EQ(power.demand(1), 650);
  EXPECT_DOUBLE_EQ(power.joules(0, 100), 30'000);
}

TEST(LimitedPower, CapsASquare) {
  const LimitedPower power(square(100, 600, 0.1, 0.3, 0), 400);
  EXPECT_NEAR(power.joules(0, 100), 100 * (0.3 * 400 + 0.7 * 100), 1e-6);
  EXPECT_NEAR(power.joules(0.01, 0.04), 0.02 * 400 + 0.01 * 100, 1e-12);
}

TEST(LimitedPower, CapsARamp) {
  const LimitedPower power(ramp(0, 1000, 10), 500);
  EXPECT_NEAR(power.joules(0, 10), 500 * 5 / 2.0 + 500 * 5, 1e-9);
}

TEST(LimitedPower, CapsASum) {
  const LimitedPower power(sum({constant(70), square(0, 300, 0.2, 0.4, 0.03), ramp(0, 190, 2)}),
                           380);
  EXPECT_NEAR(power.joules(0.1, 4.3), numeric(power, 0.1, 4.3), 0.02);
  EXPECT_NEAR(power.joules(0.1, 40) - power.joules(4.3, 40), power.joules(0.1, 4.3), 1e-6);
}

TEST(LimitedPower, KeepsEarlierLimits) {
  LimitedPower power(constant(650), 700);
  const double before = power.joules(0, 20);
  power.set_limit(20.5, 300);
  EXPECT_NEAR(power.joules(0, 40), 650 * 20.5 + 300 * 19.5, 1e-6);
  power.set_limit(30, 500);
  EXPECT_DOUBLE_EQ(power.joules(0, 20), before);
  EXPECT_DOUBLE_EQ(power.limit(20.4), 700);
  EXPECT_DOUBLE_EQ(power.limit(20.5), 300);
  EXPECT_NEAR(power.joules(0, 40), 650 * 20.5 + 300 * 9.5 + 500 * 10, 1e-6);
  EXPECT_NEAR(power.joules(-10, 40), 650 * 30.5 + 300 * 9.5 + 500 * 10, 1e-6);
}

TEST(LimitedPower, ALockedClockLeavesAShareOfThePowerAboveIdle) {
  LimitedPower power(square(100, 600, 10, 0.5, 0), 700, 100);
  power.set_share(20, 0.5);
  EXPECT_DOUBLE_EQ(power.watts(19), 100);
  EXPECT_DOUBLE_EQ(power.watts(21), 350);
  EXPECT_NEAR(power.joules(0, 40), 2 * 350 * 10 + 2 * 225 * 10, 1e-6);
  power.set_limit(40, 200);
  EXPECT_DOUBLE_EQ(power.watts(41), 200);
  EXPECT_NEAR(power.joules(40, 60), 2 * 150 * 10, 1e-6);
  EXPECT_NEAR(power.joules(40, 60), numeric(power, 40, 60), 0.1);
  power.set_share(60, 1);
  power.set_limit(60, 700);
  EXPECT_DOUBLE_EQ(power.watts(61), 600);
}

TEST(LimitedPower, IsThreadSafe) {
  LimitedPower power(square(100, 600, 0.1, 0.3, 0), 400);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&power, i] {
      for (int k = 0; k < 50; ++k) {
        if (i == 0) power.set_limit(1000 + k, 300 + k);
        EXPECT_NEAR(power.joules(0, 100), 100 * 190, 1e-6);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace jouleprof::nvml_sim
