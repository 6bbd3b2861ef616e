#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/sweep/sweep.h"
#include "model/device/sensor.h"
#include "session/sweep/run_measures.h"

namespace jouleprof::session {
namespace {

using ::testing::HasSubstr;

HostTime at(double s) { return HostTime{duration_of(1000 + s)}; }

// Settings of a board in time.
using Limits = std::vector<std::pair<double, double>>;

// Work from 2 to 18 s; power is the limit's half at each time.
model::Recording recording(const std::vector<Limits>& boards) {
  model::Recording r;
  r.run.work_begin = at(2);
  r.run.work_end = at(18);
  r.run.complete = true;
  for (std::uint32_t i = 0; i < boards.size(); ++i) {
    model::Domain gpu;
    gpu.id = model::DomainId{i + 1};
    gpu.kind = model::DomainKind::kGpu;
    gpu.device = "gpu" + std::to_string(i);
    r.domains.push_back(gpu);
    const model::SensorId power{10 + i};
    const model::SensorId limit{20 + i};
    r.sensors.push_back({power, gpu.id, model::SensorKind::kPowerRing, "samples", {}, {}});
    r.sensors.back().traits.window = r.sensors.back().traits.refresh =
        std::chrono::milliseconds{20};
    r.sensors.push_back(
        {limit, gpu.id, model::SensorKind::kGauge, std::string(model::gauge::kPowerLimit), {}, {}});
    const auto watts = [&](double t) {
      double now = boards[i].front().second;
      for (const auto& [from, value] : boards[i]) {
        if (t >= from) now = value;
      }
      return now;
    };
    for (int k = 0; k <= 1000; ++k) {
      const double t = 0.02 * k;
      r.readings.powers.push_back({power, at(t), Power::watts(watts(t) / 2)});
    }
    for (int k = 1; k < 80; ++k)
      r.readings.gauges.push_back({limit, at(0.25 * k), watts(0.25 * k)});
  }
  for (int k = 2; k < 18; ++k) r.windows.push_back({"step", at(k), at(k + 0.5), 1, 1, false});
  return r;
}

model::SweepPlan plan(std::string window = "") {
  model::SweepPlan plan;
  plan.observe = true;
  plan.knob = "power_limit_watts";
  plan.window = std::move(window);
  return plan;
}

Result<std::vector<model::SweepRun>> runs(const std::vector<Limits>& boards,
                                          const model::SweepPlan& plan) {
  return observe_runs(analysis::Run(recording(boards)), plan, {}, 7);
}

const Limits kHalves{{0, 700}, {10.1, 400}};

TEST(ObservedRuns, WindowsAreGroupedByTheLimitFound) {
  const auto found = runs({kHalves}, plan("step"));
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 2U);
  const auto& first = found->at(0);
  EXPECT_EQ(first.number, 7U);
  EXPECT_EQ(first.setting, 700);
  EXPECT_EQ(first.units, 8);  // those that begin from 2 to 9 s
  EXPECT_NEAR(*first.seconds, 0.5, 1e-9);
  EXPECT_NEAR(*first.joules, 350 * 0.5, 0.1);
  EXPECT_NEAR(*first.mean_watts, 350, 1);
  const auto& second = found->at(1);
  EXPECT_EQ(second.number, 8U);
  EXPECT_EQ(second.setting, 400);
  // The change is found at 10.25 s. What begins within a second of it may still settle.
  EXPECT_EQ(second.units, 6);  // from 12 s on
  EXPECT_NEAR(*second.joules, 200 * 0.5, 0.1);
  EXPECT_NEAR(*second.mean_watts, 200, 1);
  EXPECT_TRUE(first.is_ranked() && second.is_ranked());
}

TEST(ObservedRuns, ASettingThatComesBackIsMeasuredTwice) {
  const auto found = runs({{{0, 700}, {6, 400}, {12, 700}}}, plan("step"));
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 3U);
  const auto sweep = analysis::sweep_of(plan("step"), *found);
  ASSERT_EQ(sweep.points.size(), 2U);
  EXPECT_EQ(sweep.points[0].samples.size(), 2U);
  EXPECT_EQ(sweep.points[1].samples.size(), 1U);
  EXPECT_FALSE(sweep.points[0].samples[0].block);  // no order was drawn
}

TEST(ObservedRuns, ACommandHasOneSetting) {
  const auto same = runs({{{0, 500}}}, plan());
  ASSERT_TRUE(same) << same.error().message;
  ASSERT_EQ(same->size(), 1U);
  EXPECT_NEAR(*same->at(0).seconds, 16, 1e-9);
  EXPECT_NEAR(*same->at(0).joules, 16 * 250, 1);
  const auto changed = runs({kHalves}, plan());
  ASSERT_FALSE(changed);
  EXPECT_THAT(changed.error().message, HasSubstr("changed while the command ran (700, 400 W)"));
}

TEST(ObservedRuns, BoardsCountWhileTheirLimitsAreTheSame) {
  const auto found = runs({kHalves, {{0, 700}, {14.1, 400}}}, plan("step"));
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ(found->at(0).units, 8);
  EXPECT_NEAR(*found->at(0).joules, 2 * 350 * 0.5, 0.2);
  EXPECT_EQ(found->at(1).units, 2);  // from 16 s on
  const auto never = runs({{{0, 700}}, {{0, 400}}}, plan("step"));
  ASSERT_FALSE(never);
  EXPECT_THAT(never.error().message, HasSubstr("never had the same power limit"));
}

TEST(ObservedRuns, WhatCannotBeGroupedSaysWhy) {
  const auto absent = runs({kHalves}, plan("epoch"));
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("it has no window named epoch"));
  auto silent = recording({kHalves});
  silent.readings.gauges.clear();
  const auto unknown = observe_runs(analysis::Run(std::move(silent)), plan("step"), {}, 1);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("gpu0 does not report its power limit"));
}

}  // namespace
}  // namespace jouleprof::session
