#include "nvml_sim/core/contexts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "nvml_sim/core/simulator.h"

namespace jouleprof::nvml_sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const ContextPower kH200{47, 8, 3};

Curve curve(std::vector<ContextHolder> holders, const ContextPower& power = kH200) {
  return curve_of(std::make_shared<const Contexts>(std::move(holders), power));
}

// 8 W that decay with a time constant of 3 s, over `seconds`.
double decayed(double seconds) { return 24 * (1 - std::exp(-seconds / 3)); }

TEST(Contexts, UnitedIntervalsAreDisjointAndInOrder) {
  EXPECT_THAT(united({{5, 6}, {1, 3}, {2, 4}, {4, 4.5}, {7, 7}, {5.2, 5.4}}),
              ElementsAre(Pair(1, 4.5), Pair(5, 6)));
  EXPECT_THAT(united({}), IsEmpty());
}

TEST(Contexts, PowerIsHeldAndDecaysAfterTheLast) {
  const auto power = curve({{2, 8, nullptr}, {6, 10, nullptr}});
  EXPECT_EQ(power.watts(1.9), 0);
  EXPECT_EQ(power.watts(2), 47);
  EXPECT_EQ(power.watts(9.9), 47);  // the first has ended, the second has not
  EXPECT_DOUBLE_EQ(power.watts(10), 8);
  EXPECT_DOUBLE_EQ(power.watts(13), 8 * std::exp(-1));
  EXPECT_LT(power.watts(22), 0.15);
  EXPECT_DOUBLE_EQ(power.joules(0, 10), 47 * 8);
  EXPECT_NEAR(power.joules(0, 16), 47 * 8 + decayed(6), 1e-9);
  EXPECT_NEAR(power.joules(12, 16), decayed(6) - decayed(2), 1e-9);
  EXPECT_NEAR(power.joules(3, 11) + power.joules(11, 20), power.joules(3, 20), 1e-9);
  EXPECT_EQ(power.next_break(0), 2);
  EXPECT_EQ(power.next_break(2), 10);
  EXPECT_EQ(power.next_break(10), kForever);
}

TEST(Contexts, ANewContextEndsTheDecay) {
  const auto power = curve({{0, 1, nullptr}, {4, kForever, nullptr}});
  EXPECT_DOUBLE_EQ(power.watts(4), 47);
  EXPECT_NEAR(power.joules(0, 10), 47 + decayed(3) + 47 * 6, 1e-9);
}

TEST(Contexts, OfATreeExistWhileItHasMembers) {
  const auto tree = std::make_shared<TreeSampler>("A=1", 0, 0);
  const Contexts contexts({{-kForever, kForever, tree}}, kH200);
  const auto power = curve({{-kForever, 5, tree}});
  tree->record(1, {});
  tree->record(2, {10});
  tree->record(3, {10, 11});
  EXPECT_TRUE(contexts.exist(3.5));
  tree->record(4, {});
  EXPECT_FALSE(contexts.exist(1.9));
  EXPECT_TRUE(contexts.exist(2));
  EXPECT_FALSE(contexts.exist(4));
  tree->record(4.5, {12});
  EXPECT_NEAR(power.joules(0, 6), 47 * 2 + decayed(0.5) + 47 * 0.5 + decayed(1), 1e-9);
}

TEST(Contexts, AReturnedPowerNeverChanges) {
  const auto tree = std::make_shared<TreeSampler>("A=1", 0, 0);
  const auto power = curve({{-kForever, kForever, tree}});
  tree->record(1, {10});
  const double before = power.joules(0, 5);
  tree->record(3, {});  // recorded late: counts from 5 on
  EXPECT_DOUBLE_EQ(power.joules(0, 5), before);
  EXPECT_DOUBLE_EQ(power.watts(5), 8);
}

TEST(Contexts, RaiseThePowerAndTheClockOfADevice) {
  auto scenario = parse_scenario(R"({"devices": {"generation": "hopper", "idle_watts": 80,
      "held_watts": 127, "after_context": {"watts": 88},
      "power_limit": {"default_watts": 627},
      "power": {"shape": "square", "low_watts": 80, "high_watts": 330, "period_seconds": 100,
                "duty_ratio": 0.03, "phase_seconds": 4},
      "processes": [{"pid": 7, "from_seconds": 2, "to_seconds": 10, "memory_mib": 100}]}})",
                                 "s");
  ASSERT_TRUE(scenario) << scenario.error().message;
  const Simulator simulator(std::move(*scenario), 0);
  const SimDevice& device = *simulator.devices().front();
  EXPECT_EQ(device.watts(1), 80);
  EXPECT_EQ(device.sm_clock_mhz(1), 345U);
  EXPECT_TRUE(device.at_rest(1));
  EXPECT_TRUE(device.processes(1).empty());
  EXPECT_EQ(device.watts(3), 127);
  EXPECT_EQ(device.sm_clock_mhz(3), 1980U);
  EXPECT_FALSE(device.at_rest(3));
  EXPECT_EQ(device.utilisation(3.5), 0);
  EXPECT_EQ(device.processes(3).size(), 1U);
  EXPECT_EQ(device.watts(5), 127 + 250);
  EXPECT_DOUBLE_EQ(device.utilisation(6), 0.5);  // 250 of the 500 W that are not held
  EXPECT_EQ(device.watts(8), 127);
  EXPECT_NEAR(device.watts(10), 88, 1e-9);
  EXPECT_EQ(device.sm_clock_mhz(10.5), 345U);  // at once, while power decays
  EXPECT_TRUE(device.at_rest(10.5));
  EXPECT_EQ(device.utilisation(12), 0);
  EXPECT_NEAR(device.watts(22), 80, 0.15);
  EXPECT_NEAR(device.joules(Scope::kGpu, 0, 16), 80 * 16 + 47 * 8 + 250 * 3 + decayed(6), 1e-9);
}

}  // namespace
}  // namespace jouleprof::nvml_sim
