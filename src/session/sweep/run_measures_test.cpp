#include "session/sweep/run_measures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/device/sensor.h"

namespace jouleprof::session {
namespace {

using ::testing::HasSubstr;

constexpr model::SensorId kPower{1};
constexpr model::SensorId kClock{2};
constexpr model::SensorId kReasons{3};

HostTime at(double s) { return HostTime{duration_of(1000 + s)}; }

// Work from 2 to 18 s, at 200 W until 10 s and at 400 W from then on.
model::Recording recording() {
  model::Recording r;
  r.run.work_begin = at(2);
  r.run.work_end = at(18);
  r.run.complete = true;
  model::Domain gpu;
  gpu.kind = model::DomainKind::kGpu;
  gpu.device = "gpu0";
  r.domains = {gpu};
  r.sensors = {
      {kPower, gpu.id, model::SensorKind::kPowerRing, "samples", {}, {}},
      {kClock, gpu.id, model::SensorKind::kGauge, std::string(model::gauge::kSmClock), {}, {}},
      {kReasons,
       gpu.id,
       model::SensorKind::kGauge,
       std::string(model::gauge::kClockEventReasons),
       {},
       {}}};
  r.sensors[0].traits.window = r.sensors[0].traits.refresh = std::chrono::milliseconds{20};
  for (int i = 0; i <= 1000; ++i) {
    const double t = 0.02 * i;
    r.readings.powers.push_back({kPower, at(t), Power::watts(t <= 10 ? 200 : 400)});
  }
  const auto limited = model::ClockReasons{model::ClockReason::kPowerLimit}.gauge();
  for (int i = 0; i < 10; ++i) {
    r.readings.gauges.push_back({kClock, at(2 * i), i < 5 ? 1.5e9 : 1.9e9});
    r.readings.gauges.push_back({kReasons, at(2 * i), i < 5 ? limited : 0.0});
  }
  for (const double begin : {3.0, 5.0, 12.0}) {
    r.windows.push_back({"step", at(begin), at(begin + 1), 1, 1, false});
  }
  return r;
}

model::SweepRun measured(const model::SweepPlan& plan,
                         const std::vector<PrintedNumber>& printed = {},
                         model::Recording of = recording()) {
  model::SweepRun run;
  measure_run(analysis::Run(std::move(of)), plan, {printed, {}}, run);
  return run;
}

TEST(RunMeasures, EnergyOfOthersOnTheBoardIsNotTheCommands) {
  auto shared = recording();
  shared.processes = {{model::ProcessId{1}, 10, {}, 1, "train", "", at(2), {}, true},
                      {model::ProcessId{2}, 11, {}, 1, "other", "", at(0), {}, false}};
  for (double t = 2.5; t < 18; t += 1) {
    for (const unsigned id : {1u, 2u}) {
      shared.process_readings.gpu_processes.push_back(
          {model::ProcessId{id}, shared.domains[0].id, at(t), 0.4, 1 << 20});
    }
  }
  const auto run = measured({}, {}, shared);
  ASSERT_TRUE(run.joules && run.total_joules);
  EXPECT_NEAR(*run.total_joules, 8 * 200 + 8 * 400, 10);
  EXPECT_NEAR(*run.joules, *run.total_joules / 2, 40);
  model::SweepPlan whole;
  whole.whole_machine = true;
  const auto all = measured(whole, {}, shared);
  EXPECT_EQ(all.joules, all.total_joules);
}

// No list names a process, as in a container: the command is known to have used the board from the
// last list to its end only, which is another part of each run.
TEST(RunMeasures, WhatIsNotDividedCountsInEachRun) {
  for (const double last_list : {3.0, 10.0, 16.0}) {
    auto hidden = recording();
    constexpr model::SensorId kCount{4};
    hidden.sensors.push_back({kCount,
                              hidden.domains[0].id,
                              model::SensorKind::kGauge,
                              std::string(model::gauge::kProcessCount),
                              {},
                              {}});
    hidden.processes = {{model::ProcessId{1}, 10, {}, 1, "train", "", at(2), at(18), true}};
    for (double t = 1; t <= last_list; ++t) {
      hidden.readings.gauges.push_back({kCount, at(t), 0.0});
      hidden.process_readings.machine.push_back({at(t), {}, {}, 0});
    }
    const auto run = measured({}, {}, hidden);
    ASSERT_TRUE(run.joules) << run.unranked;
    EXPECT_NEAR(*run.joules, 8 * 200 + 8 * 400, 10) << last_list;
  }
}

TEST(RunMeasures, ARunOfWhichThePartIsUnknownIsNotRanked) {
  auto held = recording();
  held.run.command = {"train"};
  held.processes = {{model::ProcessId{1}, 10, {}, 1, "train", "", at(2), {}, true},
                    {model::ProcessId{2}, 11, {}, 1, "notebook", "", at(0), {}, false}};
  for (double t = 2.5; t < 18; t += 1) {
    for (const unsigned id : {1u, 2u}) {
      held.process_readings.gpu_processes.push_back(
          {model::ProcessId{id}, held.domains[0].id, at(t), id == 1 ? 0.4 : 0.0, 1 << 20});
    }
  }
  const auto run = measured({}, {}, held);
  EXPECT_FALSE(run.joules);
  EXPECT_FALSE(run.is_ranked());
  EXPECT_THAT(run.unranked, HasSubstr("gpu0: others held it"));
  model::SweepPlan whole;
  whole.whole_machine = true;
  EXPECT_EQ(measured(whole, {}, held).unranked, "");
}

TEST(RunMeasures, TheCommandIsTheWork) {
  const auto run = measured({});
  EXPECT_EQ(run.unranked, "");
  EXPECT_NEAR(*run.seconds, 16, 1e-9);
  EXPECT_NEAR(*run.joules, 8 * 200 + 8 * 400, 10);
  EXPECT_NEAR(*run.mean_watts, 300, 1);
  EXPECT_NEAR(*run.peak_watts, 400, 1);
  EXPECT_NEAR(*run.limited_by_power, 4.0 / 9, 1e-9);  // of the readings from 2 to 18 s
  EXPECT_NEAR(*run.sm_megahertz, (4 * 1500 + 5 * 1900) / 9.0, 1e-6);
  EXPECT_EQ(run.limited_by_heat, 0);
  EXPECT_FALSE(run.sm_utilisation);
  EXPECT_FALSE(run.simulated);
  auto simulated = recording();
  simulated.sensors.front().provenance = model::Provenance::kSimulated;
  EXPECT_TRUE(measured({}, {}, simulated).simulated);
}

// A peak of all boards but one would pass for what the work draws at most.
TEST(RunMeasures, APeakThatOneBoardLacksIsOfNoBoard) {
  constexpr model::SensorId kCounter{4};
  constexpr model::SensorId kFailing{5};
  auto two = recording();
  model::Domain other = two.domains[0];
  other.id = model::DomainId{1};
  other.device = "gpu1";
  two.domains.push_back(other);
  two.sensors.push_back({kCounter, other.id, model::SensorKind::kEnergyCounter, "counter", {}, {}});
  two.sensors.push_back({kFailing, other.id, model::SensorKind::kPowerRing, "samples", {}, {}});
  two.sensors.back().traits = two.sensors[0].traits;
  for (const double t : {0.0, 0.02, 0.04}) {
    two.readings.powers.push_back({kFailing, at(t), Power::watts(600)});
  }
  for (double t = 0; t <= 20; t += 0.1) {
    two.readings.counters.push_back({kCounter, at(t), at(t), Energy::joules(600 * t)});
  }
  const auto run = measured({}, {}, two);
  ASSERT_TRUE(run.total_joules) << run.unranked;
  EXPECT_FALSE(run.peak_watts) << *run.peak_watts;
}

TEST(RunMeasures, IterationsOfABenchmarkAreTheWork) {
  model::SweepPlan plan;
  plan.bench = "deit-b";
  model::SweepRun run;
  measure_run(analysis::Run(recording()), plan, {{}, BenchWork{"step", 4}}, run);
  EXPECT_EQ(run.unranked, "");
  EXPECT_EQ(run.units, 3 * 4);
  EXPECT_NEAR(*run.seconds, 0.25, 1e-9);
  EXPECT_NEAR(*run.joules, (200 + 200 + 400) / 12.0, 0.5);
  model::SweepRun other;
  measure_run(analysis::Run(recording()), plan, {{}, BenchWork{"absent", 4}}, other);
  EXPECT_EQ(other.unranked, "it has no window named absent");
}

TEST(RunMeasures, AMemoryClockThatIsNotHeldIsNamed) {
  model::SweepPlan plan;
  plan.knob = "memory_clock_megahertz";
  model::SweepRun run;
  run.setting = 1309;
  run.memory_megahertz = 1310;
  judge_setting(plan, run);
  EXPECT_EQ(run.unranked, "");
  run.memory_megahertz = 2619;
  judge_setting(plan, run);
  EXPECT_EQ(run.unranked, "the memory clock was 2619 MHz: the driver does not hold it");
}

TEST(RunMeasures, AWindowIsTheWork) {
  model::SweepPlan plan;
  plan.window = "step";
  const auto run = measured(plan);
  EXPECT_EQ(run.units, 3);
  EXPECT_NEAR(*run.seconds, 1, 1e-9);
  EXPECT_NEAR(*run.joules, (200 + 200 + 400) / 3.0, 3);
  plan.window = "epoch";
  EXPECT_EQ(measured(plan).unranked, "it has no window named epoch");
  EXPECT_FALSE(measured(plan).seconds);
}

TEST(RunMeasures, APrintedRateIsTheWork) {
  model::SweepPlan plan;
  plan.throughput = "x";
  // The first ends the warm-up at 11 s; from there on it draws 400 W.
  const auto run = measured(plan, {{at(11), 1}, {at(13), 4}, {at(15), 6}});
  EXPECT_NEAR(*run.seconds, 1 / 5.0, 1e-9);
  EXPECT_NEAR(*run.joules, 400 / 5.0, 1);
  // Slow units take most of the time.
  const auto uneven = measured(plan, {{at(11), 1}, {at(14), 1}, {at(15), 9}});
  EXPECT_NEAR(*uneven.units, (3 * 1 + 1 * 9) / 4.0, 1e-9);
  const auto once = measured(plan, {{at(17), 5}});
  EXPECT_NEAR(*once.joules, 300 / 5.0, 1);  // the mean power of the whole run
  EXPECT_THAT(measured(plan).unranked, HasSubstr("no number that --throughput matches"));
  EXPECT_THAT(measured(plan, {{at(17), 0}}).unranked, HasSubstr("not positive"));
  EXPECT_THAT(measured(plan, {{at(9), 5}, {at(9), 5}, {at(9), 5}}).unranked, HasSubstr("at once"));
}

TEST(RunMeasures, WithoutAGpusEnergyNothingIsRanked) {
  auto without = recording();
  without.readings.powers.clear();
  const auto run = measured({}, {}, std::move(without));
  EXPECT_THAT(run.unranked, HasSubstr("gpu0"));
  EXPECT_FALSE(run.joules);
}

model::SweepRun judged(model::SweepRun run, const std::string& knob = "power_limit_watts") {
  model::SweepPlan plan;
  plan.knob = knob;
  run.setting = 300;
  judge_setting(plan, run);
  return run;
}

TEST(RunMeasures, SettingsThatDidNotHoldAreNamed) {
  model::SweepRun run;
  run.requested = run.requested_after = run.enforced_watts = 300.4;  // a driver rounds
  run.limited_by_heat = 0.01;
  EXPECT_EQ(judged(run).unranked, "");
  run.limited_by_heat = 0.5;
  EXPECT_THAT(judged(run).unranked, HasSubstr("slowed by heat in 50 %"));
  run.enforced_watts = 250;
  EXPECT_THAT(judged(run).unranked, HasSubstr("250 W is enforced instead"));
  EXPECT_THAT(judged(run, "sm_clock_megahertz").unranked, HasSubstr("heat"));
  run.requested_after = 700;
  EXPECT_THAT(judged(run).unranked, HasSubstr("changed to 700 during the run"));
  run.requested = 310;
  EXPECT_THAT(judged(run).unranked, HasSubstr("the driver set 310 instead"));
}

// Between two readings of its GPU's state, which come once a second.
TEST(RunMeasures, WorkShorterThanTheTimeBetweenReadingsIsJudgedByThoseAroundIt) {
  auto hot = recording();
  hot.run.work_begin = at(12.2);
  hot.run.work_end = at(13.8);
  for (auto& r : hot.readings.gauges) {
    const bool is_around = r.at == at(12) || r.at == at(14);
    if (r.sensor != kReasons) continue;
    r.value = is_around ? model::ClockReasons{model::ClockReason::kThermalLimit}.gauge() : 0.0;
  }
  EXPECT_EQ(measured({}, {}, hot).limited_by_heat, 1);
  hot.run.work_begin = at(8.2);
  hot.run.work_end = at(9.8);
  EXPECT_EQ(measured({}, {}, hot).limited_by_heat, 0);
}

TEST(RunMeasures, TheLossIsTheLastThatWasPrinted) {
  const auto loss = [](std::vector<PrintedNumber> losses) {
    model::SweepRun run;
    WorkReport report;
    report.losses = std::move(losses);
    measure_run(analysis::Run(recording()), {}, report, run);
    return run.loss;
  };
  EXPECT_EQ(loss({{at(4), 2.5}, {at(9), 1.5}}), 1.5);
  EXPECT_FALSE(loss({{at(4), 2.5}, {at(9), std::nan("")}}));
  EXPECT_FALSE(loss({}));
}

}  // namespace
}  // namespace jouleprof::session
