#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analysed_test.h"
#include "analysis/recorded_run_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using model::ProcessId;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Analyse, FindsEnergyIdlePowerAndBalanceOfARun) {
  Recorded run;
  run.read_gpu();
  run.read_cpu();
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->duration(), 10s);
  EXPECT_EQ(profile->start_time, RealTime{1'700'000'003s});

  const auto& gpu = domain(*profile, kGpu0);
  ASSERT_TRUE(gpu.energy);
  EXPECT_NEAR(gpu.energy->energy.joules(), 5000, 5);
  EXPECT_NEAR(gpu.energy->error.joules(), 250, 10);
  EXPECT_LT(gpu.energy->repeatability.joules(), 25);
  EXPECT_EQ(gpu.energy->method, "fused");
  EXPECT_EQ(gpu.energy->sensor, "counter + ring");
  EXPECT_NEAR(gpu.mean_power->watts(), 500, 0.5);
  EXPECT_NEAR(gpu.peak_power->watts(), 500, 10);
  EXPECT_EQ(gpu.peak_window, 25ms);
  EXPECT_NEAR(gpu.levels.rest->energy.joules(), 1200, 5);
  EXPECT_NEAR(gpu.balance.counter->joules(), 5000, 40);
  EXPECT_NEAR(gpu.balance.integral->joules(), 5000, 20);

  const auto& cpu = domain(*profile, kPackage0);
  ASSERT_TRUE(cpu.energy) << cpu.reason;
  EXPECT_NEAR(cpu.energy->energy.joules(), 1000, 3);  // the counter wrapped within
  EXPECT_EQ(cpu.energy->method, "counter");
  EXPECT_NEAR(cpu.levels.rest->energy.joules(), 400, 2);
  EXPECT_THAT(profile->warnings, IsEmpty());
  EXPECT_FALSE(profile->simulated);
  expect_conserved(*profile);
}

TEST(Analyse, SharesSumToTheWholeAndFollowCpuTime) {
  Recorded run;
  run.read_gpu();
  run.read_cpu();
  run.add_processes();
  for (double t = 3.5; t <= 14; t += 1) {
    run.recording.process_readings.gpu_processes.push_back(
        {ProcessId{7}, kGpu0, at(t), 0.6, 1 << 20});
    run.recording.process_readings.gpu_processes.push_back(
        {ProcessId{9}, kGpu0, at(t), 0.2, 1 << 19});
  }
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  expect_conserved(*profile);
  // Active 600 J: a half, a quarter (half of it by unseen children), and the others' quarter.
  EXPECT_NEAR(share(*profile, ProcessId{7}, kPackage0).joules(), 300, 3);
  EXPECT_NEAR(share(*profile, ProcessId{8}, kPackage0).joules(), 150, 3);
  EXPECT_NEAR(domain(*profile, kPackage0).others->joules(), 150, 3);
  // Active 3800 J of the GPU: three to one.
  EXPECT_NEAR(share(*profile, ProcessId{7}, kGpu0).joules(), 2850, 10);
  EXPECT_NEAR(domain(*profile, kGpu0).others->joules(), 950, 10);
  ASSERT_EQ(profile->processes.size(), 2u);
  EXPECT_EQ(profile->processes[0].process.name, "train");
  EXPECT_EQ(profile->processes[0].peak_pss_bytes, 1000u);
  EXPECT_EQ(profile->processes[0].peak_gpu_memory_bytes, 1u << 20);
  EXPECT_NEAR(seconds(*profile->processes[1].cpu_time), 10, 0.1);
  EXPECT_EQ(profile->processes[0].provenance, model::Provenance::kEstimated);

  for (double from = 0; from < 10; from += 1.7) {
    const auto part = profile_of(run.recording, {duration_of(from), duration_of(from + 1.1)});
    ASSERT_TRUE(part);
    expect_conserved(*part);
  }
}

TEST(Analyse, APartAndTheRestSumToTheWhole) {
  Recorded run;
  run.read_gpu();
  const auto whole = profile_of(run.recording);
  const auto first = profile_of(run.recording, {{}, duration_of(4.2345)});
  const auto second = profile_of(run.recording, {duration_of(4.2345), {}});
  ASSERT_TRUE(whole && first && second);
  EXPECT_EQ(domain(*first, kGpu0).energy->energy + domain(*second, kGpu0).energy->energy,
            domain(*whole, kGpu0).energy->energy);
  EXPECT_NEAR(domain(*first, kGpu0).energy->energy.joules(), 2117.25, 3);
}

TEST(Analyse, ASingleGpuProcessGetsAllAndSeveralWithoutUtilisationHaveItTogether) {
  Recorded run;
  run.read_gpu();
  run.add_processes();
  auto& gpu = run.recording.process_readings.gpu_processes;
  for (double t = 3.5; t <= 14; t += 1) gpu.push_back({ProcessId{7}, kGpu0, at(t), {}, 1 << 20});
  auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  expect_conserved(*profile);
  EXPECT_NEAR(share(*profile, ProcessId{7}, kGpu0).joules(), 3800, 15);
  EXPECT_EQ(*domain(*profile, kGpu0).unattributed, Energy{});

  for (double t = 3.5; t <= 14; t += 1) gpu.push_back({ProcessId{8}, kGpu0, at(t), {}, 1 << 20});
  profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  expect_conserved(*profile);
  EXPECT_EQ(share(*profile, ProcessId{7}, kGpu0), Energy{});
  EXPECT_NEAR(domain(*profile, kGpu0).within_command->joules(), 3800, 15);
  EXPECT_EQ(*domain(*profile, kGpu0).unattributed, Energy{});

  // One of them is of another family: it is not known whose the energy is.
  run.recording.processes[1].in_tree = false;
  profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  expect_conserved(*profile);
  EXPECT_NEAR(domain(*profile, kGpu0).unattributed->joules(), 3800, 15);
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("can both have used it")));
}

TEST(Analyse, ARecordingCutOffEndsWithTheFirstSensorThatStops) {
  Recorded run;
  run.read_gpu(9);
  run.read_cpu(11);
  run.recording.run.work_end.reset();
  run.recording.run.complete = false;
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  ASSERT_TRUE(domain(*profile, kGpu0).energy) << domain(*profile, kGpu0).reason;
  ASSERT_TRUE(domain(*profile, kPackage0).energy);
  EXPECT_NEAR(seconds(profile->duration()), 6, 0.1);
  EXPECT_NEAR(domain(*profile, kGpu0).mean_power->watts(), 500, 2);
}

// A GPU's memory is read once a second: of a program that ends early it may have one reading.
TEST(Analyse, APartThatIsReadSeldomDoesNotEndARecordingCutOff) {
  for (const double last : {3.2, 8.7}) {
    Recorded run;
    run.read_gpu(9);
    run.recording.run.work_end.reset();
    run.recording.run.complete = false;
    const model::DomainId memory{7};
    run.recording.domains.push_back(
        {memory, model::DomainKind::kGpuMemory, "gpu0", "", "", kGpu0, true, ""});
    run.recording.sensors.push_back(
        {model::SensorId{17}, memory, model::SensorKind::kPowerInstant, "memory", {}, {}});
    for (double t = 0.2; t <= last; t += 0.5)
      run.recording.readings.powers.push_back({model::SensorId{17}, at(t), Power::watts(30)});
    const auto profile = profile_of(run.recording);
    ASSERT_TRUE(profile);
    EXPECT_NEAR(seconds(profile->duration()), last > 8 ? 5.7 : 6, 0.15);
    EXPECT_EQ(domain(*profile, memory).energy.has_value(), last > 8)
        << domain(*profile, memory).reason;
    EXPECT_NEAR(domain(*profile, kGpu0).mean_power->watts(), 500, 2);
  }
}

TEST(Analyse, SimulatedSensorsMarkTheProfile) {
  Recorded run;
  run.read_gpu();
  for (auto& s : run.recording.sensors) s.provenance = model::Provenance::kSimulated;
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  EXPECT_TRUE(profile->simulated);
  EXPECT_EQ(domain(*profile, kGpu0).energy->provenance, model::Provenance::kSimulated);
}

TEST(Analyse, AModelIsLabelledEstimatedWithItsWideInterval) {
  Recorded run;
  run.recording.sensors.clear();
  model::Sensor model{kRapl,
                      kPackage0,
                      model::SensorKind::kPowerInstant,
                      "load model",
                      model::Provenance::kEstimated,
                      {}};
  model.traits.scale = model::ScaleError::symmetric(0.4);
  run.recording.sensors.push_back(model);
  for (double t = 0; t < 16; t += 0.5) {
    run.recording.readings.powers.push_back({kRapl, at(t), Power::watts(50)});
  }
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  const auto& cpu = domain(*profile, kPackage0);
  ASSERT_TRUE(cpu.energy) << cpu.reason;
  EXPECT_EQ(cpu.energy->energy, Energy::joules(500));
  EXPECT_GE(cpu.energy->error, Energy::joules(200));
  EXPECT_EQ(cpu.energy->method, "model");
  EXPECT_EQ(cpu.energy->provenance, model::Provenance::kEstimated);
}

TEST(Analyse, RefusesAnEmptyPartAndAnEmptyRecording) {
  Recorded run;
  run.read_gpu();
  const auto empty = profile_of(run.recording, {duration_of(5), duration_of(5)});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, Errc::kInvalidArgument);
  const auto outside = profile_of(run.recording, {duration_of(5), duration_of(500)});
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().code, Errc::kInvalidArgument);
  const auto nothing = profile_of(model::Recording{});
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, Errc::kCorrupt);
}

TEST(PowerCurve, CoversTheRecordingWithSteps) {
  Recorded run;
  run.read_gpu();
  const auto curve = analysis::Run(run.recording).curve(0, 100ms);
  ASSERT_GT(curve.size(), 150u);
  for (std::size_t i = 1; i < curve.size(); ++i) EXPECT_EQ(curve[i].begin, curve[i - 1].end);
  double peak = 0;
  for (const auto& step : curve) {
    peak = std::max(peak, step.power.watts());
    EXPECT_FALSE(step.error);
    if (step.begin > at(4) && step.end < at(12)) {
      EXPECT_NEAR(step.power.watts(), 500, 10);
    }
  }
  EXPECT_LT(peak, 520);
  for (const auto& step :
       analysis::Run(run.recording).curve(0, 100ms, {}, model::StepErrors::kWanted)) {
    EXPECT_TRUE(step.error);
  }
  EXPECT_THAT(analysis::Run(run.recording).curve(1, 100ms), IsEmpty());
}

}  // namespace
}  // namespace jouleprof::analysis
