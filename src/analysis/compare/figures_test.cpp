#include "analysis/compare/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/sides.h"
#include "analysis/recorded_run_test.h"

namespace jouleprof::analysis {
namespace {

using simulated::at;
using simulated::Recorded;
using testing::ElementsAre;
using testing::Pair;

// Ten seconds at 500 W and 100 W, with two windows of 2 s each.
Recorded worked() {
  Recorded run;
  run.read_gpu();
  run.read_cpu();
  run.recording.run.host = "node";
  run.recording.domains[0].uuid = "GPU-1";
  run.recording.windows = {{"step", at(4), at(6), 1, 1, false},
                           {"step", at(7), at(9), 1, 1, false}};
  return run;
}

RunFigures figures(const model::Recording& recording, const FigureOptions& options = {}) {
  auto made = figures_of(Run(recording), "a.jprof", options);
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : RunFigures{};
}

TEST(RunFigures, OfTheWholeRunAreSumsOverMeasuredDomains) {
  const auto f = figures(worked().recording);
  EXPECT_NEAR(*f.energy.value, 6000, 12);
  EXPECT_NEAR(*f.time.value, 10, 1e-9);
  EXPECT_NEAR(*f.power.value, 600, 1.2);
  EXPECT_FALSE(f.energy.estimated);
  EXPECT_THAT(f.boards,
              ElementsAre(Pair("gpu0", "GPU-1"), Pair("package-0", "node/package-0/a CPU")));
  // 5 % of the GPU's 5 kJ and 3 % of the package's 1 kJ, of 6 kJ.
  EXPECT_NEAR(f.energy.calibration.at("gpu0"), 0.05 * 5 / 6, 1e-3);
  EXPECT_NEAR(f.energy.calibration.at("package-0"), 0.03 / 6, 1e-3);
  EXPECT_LT(f.energy.repeatability, 0.01);
  EXPECT_THAT(f.conditions.work, ElementsAre(Pair("windows step", 2)));
  EXPECT_EQ(f.started, RealTime{std::chrono::seconds{1'700'000'003}});
  EXPECT_TRUE(f.excluded.empty());
}

// As those of a rank with a board of its own.
TEST(RunFigures, OfWindowsAreOfTheDevicesThatTheyMeasure) {
  auto run = worked();
  for (auto& window : run.recording.windows) {
    window.devices = model::DeviceSet({simulated::kGpu0});
  }
  FigureOptions per_step{.per = "step"};
  per_step.by = CompareBy::kWindow;
  auto f = figures(run.recording, per_step);
  ASSERT_TRUE(f.energy.value) << f.energy.reason;
  EXPECT_NEAR(*f.energy.value, 1000, 3);
  EXPECT_THAT(f.boards, ElementsAre(Pair("gpu0", "GPU-1")));
  ASSERT_EQ(f.rows.size(), 1u);
  EXPECT_NEAR(*f.rows[0].energy.value, 1000, 3);
  EXPECT_EQ(f.rows[0].detail, "gpu0");
  // Each device counts for the windows that measure it: their sum, over all of them.
  run.recording.windows[1].devices = model::DeviceSet({simulated::kPackage0});
  f = figures(run.recording, per_step);
  EXPECT_NEAR(*f.energy.value, (1000 + 200) / 2., 3);
  EXPECT_EQ(f.boards.size(), 2u);
  EXPECT_EQ(f.rows[0].detail, "");
  // One of a board without a figure: the sum of the others is of fewer windows.
  run.recording.domains.push_back(
      {model::DomainId{8}, model::DomainKind::kGpu, "gpu1", "", "GPU-2", {}, true, "GPU is lost"});
  run.recording.windows[1].devices = model::DeviceSet({model::DomainId{8}});
  f = figures(run.recording, per_step);
  EXPECT_FALSE(f.energy.value);
  EXPECT_FALSE(f.rows[0].energy.value);
}

TEST(RunFigures, OfAnUnknownBoardAreOfTheSameOneAsNoOther) {
  auto run = worked();
  run.recording.domains[0].uuid.clear();
  run.recording.run.host.clear();
  const auto of = [&](const char* name) {
    return *figures_of(analysis::Run(run.recording), name, {});
  };
  EXPECT_FALSE(is_same_board(std::vector{of("a.jprof")}, std::vector{of("b.jprof")}));
  run.recording.run.host = "node";
  EXPECT_TRUE(is_same_board(std::vector{of("a.jprof")}, std::vector{of("b.jprof")}));
}

// Longer runs would not resolve it.
TEST(RunFigures, SayWhereOthersMayHaveUsedAllOfADevice) {
  Recorded run;
  run.read_gpu();
  run.add_processes();
  for (double t = 3.5; t <= 14; t += 1) {
    for (const std::uint32_t id : {7U, 9U}) {
      run.recording.process_readings.gpu_processes.push_back(
          {model::ProcessId{id}, simulated::kGpu0, at(t), {}, 1 << 20});
    }
  }
  const auto f = figures(run.recording);
  EXPECT_EQ(f.energy.reason, "undivided");
  EXPECT_GT(f.energy.at_most.value_or(0), 3000);
  EXPECT_EQ(f.power.reason, "undivided");
}

TEST(RunFigures, AreOfTheCommandUnlessTheMachineIsAskedFor) {
  auto run = worked();
  run.add_processes();
  for (double t = 3.5; t <= 14; t += 1) {
    run.recording.process_readings.gpu_processes.push_back(
        {model::ProcessId{7}, simulated::kGpu0, at(t), 0.9, 1 << 20});
  }
  const auto own = figures(run.recording);
  EXPECT_TRUE(own.is_command);
  // The GPU is its own; of the package it has three quarters above rest, and others used it.
  EXPECT_NEAR(*own.energy.value, 5000 + 450, 20);
  EXPECT_THAT(own.rest, ElementsAre(Pair("gpu0", testing::DoubleNear(1200, 20))));
  EXPECT_FALSE(own.energy.estimated);  // by the sensors
  FigureOptions options;
  options.whole_machine = true;
  const auto all = figures(run.recording, options);
  EXPECT_FALSE(all.is_command);
  EXPECT_NEAR(*all.energy.value, 6000, 12);
}

TEST(RunFigures, RestThatIsOfSomeRunsOnlyIsLeftOutOfAll) {
  const auto of = [](double joules, double rest) {
    RunFigures run;
    run.energy = {joules, 0.01, {{"gpu0", 0.05}}};
    run.power = {joules / 10, 0.01, {{"gpu0", 0.05}}};
    run.boards = {{"gpu0", "GPU-0"}, {"package-0", "package-0"}};
    if (rest > 0) run.rest["gpu0"] = rest;
    run.rest["package-0"] = 100;
    return run;
  };
  std::vector<RunFigures> before{of(1000, 400)};
  std::vector<RunFigures> after{of(600, 0)};
  EXPECT_THAT(align_rest(before, after), ElementsAre("gpu0"));
  EXPECT_DOUBLE_EQ(*before[0].energy.value, 600);
  EXPECT_DOUBLE_EQ(*before[0].power.value, 60);
  EXPECT_DOUBLE_EQ(before[0].energy.repeatability * 600, 10);  // the same joules
  EXPECT_DOUBLE_EQ(*after[0].energy.value, 600);
  EXPECT_THAT(align_rest(before, after), ElementsAre());
}

TEST(RunFigures, RestThatIsNotKnownByItselfIsPartOfTheRun) {
  RunFigures known, unknown, without;
  known.boards = unknown.boards = without.boards = {{"gpu0", "GPU-0"}};
  known.energy = unknown.energy = {1000, 0.01, {{"gpu0", 0.05}}};
  without.energy = {600, 0.01, {{"gpu0", 0.05}}};
  known.rest["gpu0"] = 400;
  unknown.rest_in_shares = {"gpu0"};
  std::vector<RunFigures> before{known}, after{unknown};
  EXPECT_THAT(align_rest(before, after), ElementsAre());
  EXPECT_DOUBLE_EQ(*before[0].energy.value, 1000);
  EXPECT_DOUBLE_EQ(*after[0].energy.value, 1000);

  std::vector<RunFigures> others{without};
  EXPECT_THAT(align_rest(after, others), ElementsAre("gpu0"));
  EXPECT_FALSE(after[0].energy.value);
  EXPECT_EQ(after[0].energy.reason, "rest_unknown");
  EXPECT_DOUBLE_EQ(*others[0].energy.value, 600);
}

TEST(RunFigures, RestOfADeviceThatTheOtherRunsLackIsPartOfTheRun) {
  RunFigures one, two;
  one.boards = {{"gpu0", "GPU-0"}};
  two.boards = {{"gpu0", "GPU-0"}, {"gpu1", "GPU-1"}};
  one.energy = two.energy = {1000, 0.01, {{"gpu0", 0.05}}};
  one.rest["gpu0"] = two.rest["gpu0"] = 400;
  two.rest["gpu1"] = 100;
  std::vector<RunFigures> before{one}, after{two};
  EXPECT_THAT(align_rest(before, after), ElementsAre());
  EXPECT_DOUBLE_EQ(*after[0].energy.value, 1000);
  after[0].rest.erase("gpu1");
  after[0].rest_in_shares.insert("gpu1");
  EXPECT_THAT(align_rest(before, after), ElementsAre());
  EXPECT_DOUBLE_EQ(*after[0].energy.value, 1000);
}

TEST(RunFigures, OfAUnitAreMeansOfItsWindows) {
  const auto f = figures(worked().recording, {CompareBy::kWindow, "step"});
  EXPECT_NEAR(*f.energy.value, 1200, 12);
  EXPECT_NEAR(*f.time.value, 2, 1e-9);
  EXPECT_NEAR(*f.power.value, 600, 6);
  EXPECT_THAT(f.conditions.work, ElementsAre(Pair("windows step", 1)));
  ASSERT_EQ(f.rows.size(), 1u);
  EXPECT_EQ(f.rows[0].name, "step");
  EXPECT_EQ(f.rows[0].count, 2u);
  EXPECT_NEAR(*f.rows[0].energy.value, 1200, 12);
}

TEST(RunFigures, EstimatesStayOutsideOfAMeasuredTotal) {
  auto run = worked();
  for (auto& sensor : run.recording.sensors) {
    if (sensor.id == simulated::kRapl) sensor.provenance = model::Provenance::kEstimated;
  }
  const auto f = figures(run.recording);
  EXPECT_NEAR(*f.energy.value, 5000, 12);
  EXPECT_THAT(f.excluded, ElementsAre("package-0 (estimated)"));
}

TEST(RunFigures, NameAnUnknownWindowAndMissingEnergies) {
  EXPECT_EQ(
      figures_of(analysis::Run(worked().recording), "a", {CompareBy::kTotal, "epoch"}).error().code,
      Errc::kNotFound);
  auto run = worked();
  run.recording.readings = {};
  const auto none = figures_of(analysis::Run(run.recording), "a", {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::kUnavailable);
}

TEST(RunFigures, HaveTheConditionsOfTheGpu) {
  auto run = worked();
  const auto gauge = [&](unsigned id, std::string_view name, double value) {
    run.recording.sensors.push_back({model::SensorId{id},
                                     simulated::kGpu0,
                                     model::SensorKind::kGauge,
                                     std::string(name),
                                     {},
                                     {}});
    run.recording.readings.gauges.push_back({model::SensorId{id}, at(5), value});
    run.recording.readings.gauges.push_back({model::SensorId{id}, at(8), value});
    run.recording.readings.gauges.push_back({model::SensorId{id}, at(15), 10 * value});  // after
  };
  gauge(20, model::gauge::kPowerLimit, 450);
  gauge(21, model::gauge::kSmClock, 1.9e9);
  gauge(22, model::gauge::kTemperature, 41);
  const auto c = figures(run.recording).conditions;
  EXPECT_THAT(c.power_limits, ElementsAre(Pair("gpu0", 450)));
  EXPECT_DOUBLE_EQ(*c.sm_megahertz, 1900);
  EXPECT_EQ(c.start_celsius, 41);
  EXPECT_TRUE(c.complete);
  EXPECT_FALSE(c.traced);
}

}  // namespace
}  // namespace jouleprof::analysis
