#include "analysis/sweep/sweep.h"

#include <gtest/gtest.h>

namespace jouleprof::analysis {
namespace {

model::ImportedWindow window(const char* limit, double seconds, std::vector<double> joules,
                             const char* batch = "64") {
  model::ImportedWindow w;
  w.name = "epoch";
  w.duration = duration_of(seconds);
  for (std::uint32_t i = 0; i < joules.size(); ++i) {
    w.energies.push_back({model::DomainId{i}, Energy::joules(joules[i])});
  }
  w.labels = {{"batch_size", batch}};
  if (limit != nullptr) w.labels.push_back({"power_limit_watts", limit});
  return w;
}

model::Recording recording(std::vector<model::ImportedWindow> windows) {
  model::Recording r;
  for (std::uint32_t i = 0; i < 2; ++i) {
    r.domains.push_back({model::DomainId{i},
                         model::DomainKind::kGpu,
                         "gpu" + std::to_string(i),
                         "",
                         "",
                         {},
                         true,
                         ""});
  }
  r.domains.push_back(
      {model::DomainId{2}, model::DomainKind::kCpu, "package-0", "", "", {}, true, ""});
  r.imported_windows = std::move(windows);
  return r;
}

TEST(Sweep, WindowsOfOneSettingAreSamplesOfOnePoint) {
  const auto sweeps = sweeps_of(recording({window("200", 12, {100}), window("300", 10, {120}),
                                           window("200", 14, {104}), window("300", 10, {130})}));
  ASSERT_EQ(sweeps.size(), 1U);
  ASSERT_EQ(sweeps[0].points.size(), 2U);
  EXPECT_EQ(sweeps[0].knob, "power_limit_watts");
  EXPECT_EQ(sweeps[0].points[0].setting, 300);
  EXPECT_EQ(sweeps[0].points[1].samples.size(), 2U);
  EXPECT_DOUBLE_EQ(sweeps[0].points[1].mean_seconds(), 13);
  EXPECT_DOUBLE_EQ(sweeps[0].points[1].mean_joules(), 102);
}

TEST(Sweep, EachSetOfOtherLabelsIsASweepOfItsOwn) {
  const auto sweeps =
      sweeps_of(recording({window("200", 12, {100}, "32"), window("200", 12, {100}, "64")}));
  ASSERT_EQ(sweeps.size(), 2U);
  EXPECT_EQ(sweeps[0].labels[0].value, "32");
}

TEST(Sweep, EnergyIsTheSumOfTheGpusWithoutTheCpu) {
  const auto sweeps = sweeps_of(recording({window("200", 12, {100, 50, 1000})}));
  EXPECT_DOUBLE_EQ(sweeps.at(0).points.at(0).mean_joules(), 150);
}

TEST(Sweep, AWindowThatLacksAGpuOfTheOthersIsLeftOut) {
  const auto sweeps = sweeps_of(recording(
      {window("300", 10, {280, 280}), window("250", 11, {252}), window("200", 12, {240, 240})}));
  ASSERT_EQ(sweeps.size(), 1U);
  EXPECT_EQ(sweeps[0].gpus, 2U);
  ASSERT_EQ(sweeps[0].points.size(), 2U);
  EXPECT_EQ(sweeps[0].points[1].setting, 200);
  ASSERT_EQ(sweeps[0].left_out.size(), 1U);
  EXPECT_EQ(sweeps[0].left_out[0].name, "epoch, window 2");
  EXPECT_EQ(sweeps[0].left_out[0].reason, "it has no energy of gpu1");
}

TEST(Sweep, WindowsWithoutAKnobAndWithoutFiguresAreLeftOut) {
  const auto sweeps = sweeps_of(recording({window(nullptr, 12, {100}), window("200", 0, {100}),
                                           window("200", 12, {}), window("x", 1, {1})}));
  ASSERT_EQ(sweeps.size(), 1U);
  ASSERT_EQ(sweeps[0].left_out.size(), 2U);
  EXPECT_EQ(sweeps[0].left_out[0].name, "epoch, window 2");
  EXPECT_EQ(sweeps[0].left_out[0].reason, "it has no duration");
  EXPECT_EQ(sweeps[0].left_out[1].reason, "it has no energy of a GPU");
  EXPECT_TRUE(sweeps[0].points.empty());
}

// Three limits in four blocks, which drift by 10 % each.
std::vector<model::SweepRun> runs_in_blocks() {
  std::vector<model::SweepRun> runs;
  for (unsigned block = 1; block <= 4; ++block) {
    for (const double limit : {700, 500, 300}) {
      model::SweepRun run;
      run.number = static_cast<unsigned>(runs.size()) + 2;
      run.block = block;
      run.setting = limit;
      run.seconds = 700 / limit * (1 + 0.1 * block);
      run.joules = limit * *run.seconds;
      runs.push_back(run);
    }
  }
  return runs;
}

model::SweepPlan plan_of_blocks() {
  model::SweepPlan plan;
  plan.knob = "power_limit_watts";
  plan.settings = {700, 500, 300};
  plan.reference = 700;
  return plan;
}

TEST(Sweep, TheGpusOfAPlanAreCounted) {
  auto plan = plan_of_blocks();
  EXPECT_EQ(sweep_of(plan, runs_in_blocks()).gpus, 1U);
  plan.devices = {"GPU-a", "GPU-b"};
  EXPECT_EQ(sweep_of(plan, runs_in_blocks()).gpus, 2U);
}

TEST(Sweep, RunsThatAreLeftOutAreNamed) {
  auto runs = runs_in_blocks();
  runs[4].unranked = "slowed by heat in 5 % of the readings";
  const auto sweep = sweep_of(plan_of_blocks(), runs);
  ASSERT_EQ(sweep.left_out.size(), 1U);
  EXPECT_EQ(sweep.left_out[0].setting, 500);
  EXPECT_EQ(sweep.left_out[0].name, "run 6, block 2");
  EXPECT_EQ(sweep.left_out[0].reason, "slowed by heat in 5 % of the readings");
  EXPECT_TRUE(sweep.outliers.empty());  // drift makes none
}

TEST(Sweep, ARunFarFromItsSettingsOthersIsNamedAndCounts) {
  auto runs = runs_in_blocks();
  *runs[8].seconds *= 2;
  *runs[8].joules *= 1.5;
  const auto sweep = sweep_of(plan_of_blocks(), runs);
  ASSERT_EQ(sweep.outliers.size(), 1U);
  EXPECT_EQ(sweep.outliers[0].setting, 300);
  EXPECT_EQ(sweep.outliers[0].name, "run 10, block 3");
  EXPECT_EQ(
      sweep.outliers[0].reason,
      "about 1.9 times the time of its setting's other runs, about 1.4 times the energy of its "
      "setting's other runs");
  EXPECT_EQ(sweep.points[2].samples.size(), 4U);
  // Of two runs none is the outlier.
  runs.resize(6);
  *runs[5].seconds *= 3;
  EXPECT_TRUE(sweep_of(plan_of_blocks(), runs).outliers.empty());
}

}  // namespace
}  // namespace jouleprof::analysis
