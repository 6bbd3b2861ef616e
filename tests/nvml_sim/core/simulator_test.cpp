#include "nvml_sim/core/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/clock.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::nvml_sim {
namespace {

constexpr std::int64_t kEpoch = 1'790'000'000'000'000'000;

std::unique_ptr<Simulator> simulate(const std::string& text, const std::string& state = {}) {
  auto scenario = parse_scenario(text, "s.json");
  EXPECT_TRUE(scenario) << scenario.error().message;
  return std::make_unique<Simulator>(std::move(*scenario), kEpoch, state);
}

const SimDevice& first(const std::unique_ptr<Simulator>& simulator) {
  return *simulator->devices().front();
}

TEST(Simulator, AnIdleDeviceDrawsItsIdlePower) {
  const auto sim = simulate(R"({"devices": {"generation": "hopper", "idle_watts": 72}})");
  EXPECT_DOUBLE_EQ(first(sim).joules(Scope::kGpu, 0, 10), 720);
  EXPECT_EQ(first(sim).utilisation(5), 0);
  EXPECT_EQ(first(sim).sm_clock_mhz(5), 345U);
}

TEST(Simulator, LocksAPhaseToTheWallClock) {
  auto scenario = parse_scenario(R"({"devices": {"generation": "hopper", "power": {
      "shape": "square", "low_watts": 100, "high_watts": 600, "period_seconds": 0.1,
      "duty_ratio": 0.3, "phase_from": "wall_clock"}}})",
                                 "s");
  ASSERT_TRUE(scenario);
  // Started 40 ms into a period of the wall clock: low until the next begins, 60 ms later.
  const Simulator sim(std::move(*scenario), kEpoch + 40'000'000);
  EXPECT_DOUBLE_EQ(sim.devices().front()->watts(0.0599), 100);
  EXPECT_DOUBLE_EQ(sim.devices().front()->watts(0.0601), 600);
}

TEST(Simulator, ScopesArePartsOfTheModule) {
  const auto sim = simulate(R"({"devices": {"generation": "grace_hopper",
      "power": {"shape": "constant", "watts": 300},
      "module_power": {"shape": "constant", "watts": 120}, "idle_watts": 80}})");
  EXPECT_DOUBLE_EQ(first(sim).joules(Scope::kGpu, 0, 10), 3000);
  EXPECT_DOUBLE_EQ(first(sim).joules(Scope::kModule, 0, 10), 4200);
  const auto before = *first(sim).counter_mj(10);
  EXPECT_NEAR(static_cast<double>(*first(sim).counter_mj(20) - before), 4'200'000, 2);
}

TEST(Simulator, ALimitCapsPowerAndSpeed) {
  auto sim = simulate(R"({"devices": {"generation": "hopper", "idle_watts": 70,
      "power": {"shape": "constant", "watts": 650}}})");
  EXPECT_DOUBLE_EQ(first(sim).speed(1), 1);
  EXPECT_FALSE(first(sim).at_limit(1));
  sim->devices().front()->set_limit(10, 215);
  EXPECT_DOUBLE_EQ(first(sim).watts(9), 650);
  EXPECT_DOUBLE_EQ(first(sim).watts(11), 215);
  EXPECT_TRUE(first(sim).at_limit(11));
  EXPECT_NEAR(first(sim).speed(11), std::cbrt((215.0 - 70) / (650 - 70)), 1e-12);
  EXPECT_EQ(first(sim).sm_clock_mhz(11), 1245U);
  EXPECT_NEAR(first(sim).joules(Scope::kGpu, 0, 20), 6500 + 2150, 1e-9);
}

TEST(Simulator, ALockedClockSlowsWorkAsTheLimitOfTheSameClockDoes) {
  auto sim = simulate(R"({"devices": {"generation": "hopper", "idle_watts": 70,
      "power": {"shape": "constant", "watts": 650}}})");
  SimDevice& device = *sim->devices().front();
  device.lock_clock(10, 990);  // of 1980 MHz
  EXPECT_DOUBLE_EQ(device.speed(9), 1);
  EXPECT_NEAR(device.speed(11), 0.5, 1e-12);
  EXPECT_EQ(device.sm_clock_mhz(11), 990U);
  EXPECT_NEAR(device.watts(11), 70 + 580.0 / 8, 1e-9);
  EXPECT_FALSE(device.at_limit(11));
  device.lock_clock(20, std::nullopt);
  device.set_limit(20, 70 + 580.0 / 8);
  EXPECT_NEAR(device.speed(21), 0.5, 1e-12);
  EXPECT_TRUE(device.at_limit(21));
}

TEST(Simulator, TheLeastOfTwoLimitsIsEnforced) {
  auto sim = simulate(R"({"devices": {"generation": "hopper",
      "power": {"shape": "constant", "watts": 650}, "power_limit": {"other_limit_watts": 400}}})");
  SimDevice& device = *sim->devices().front();
  EXPECT_DOUBLE_EQ(device.requested_limit(), 700);
  EXPECT_DOUBLE_EQ(device.watts(1), 400);
  device.set_limit(2, 300);
  EXPECT_DOUBLE_EQ(device.watts(3), 300);
  device.set_limit(4, 500);
  EXPECT_DOUBLE_EQ(device.requested_limit(), 500);
  EXPECT_DOUBLE_EQ(device.limit(5), 400);
}

TEST(Simulator, ProcessesShareALimitThroughAStateFile) {
  const TempTree tree;
  const std::string text =
      R"({"devices": {"generation": "hopper", "power": {"shape": "constant", "watts": 650}}})";
  const auto tool = simulate(text, (tree / "state").string());
  const auto work = simulate(text, (tree / "state").string());
  ASSERT_TRUE(tool->set_limit(0, 300));
  EXPECT_DOUBLE_EQ(first(tool).limit(tool->now()), 300);
  EXPECT_DOUBLE_EQ(first(work).limit(work->now()), 700);
  work->take_shared_settings();
  EXPECT_DOUBLE_EQ(first(work).limit(work->now()), 300);
  ASSERT_TRUE(tool->lock_clock(0, 990));
  work->take_shared_settings();
  EXPECT_NEAR(first(work).speed(work->now()), 0.5, 1e-12);
  ASSERT_TRUE(tool->lock_clock(0, std::nullopt));
  work->take_shared_settings();
  EXPECT_GT(first(work).speed(work->now()), 0.5);
  const auto third = simulate(text, (tree / "state").string());
  third->take_shared_settings();
  const double t = third->now();
  EXPECT_DOUBLE_EQ(first(third).joules(Scope::kGpu, 0, t), first(work).joules(Scope::kGpu, 0, t));
  EXPECT_THAT(simulate(text, "/nowhere/state")->set_limit(0, 300).error().message,
              testing::HasSubstr("/nowhere/state"));
}

TEST(Simulator, StartsAtTheEnvironmentsEpochOrNow) {
  EXPECT_EQ((*Simulator::open({"", "2000.25", ""}))->epoch_ns(), 2'000'250'000'000);
  EXPECT_THAT(Simulator::open({"", "soon", ""}).error().message,
              testing::HasSubstr("JOULEPROF_NVML_EPOCH is 'soon'"));
  const auto before = RealClock::now().time_since_epoch().count();
  const auto now = Simulator::open({});
  ASSERT_TRUE(now);
  EXPECT_GE((*now)->epoch_ns(), before);
  EXPECT_EQ((*now)->devices().size(), 1U);
}

}  // namespace
}  // namespace jouleprof::nvml_sim
