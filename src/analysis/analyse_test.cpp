#include "analysis/analyse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "analysis/simulated_sensors_test.h"
#include "model/gauge_names.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using model::ProcessId;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr model::DomainId kPackage0{1};
constexpr model::SensorId kRapl{2};
constexpr model::SensorId kReasons{3};
constexpr model::SensorId kUtilisation{4};

// A GPU at 120 W idle that works at 500 W from 3 s to 13 s, and a package at 40 and 100 W.
class Recorded {
 public:
  Recorded() {
    recording.run.complete = true;
    recording.run.work_begin = at(3);
    recording.run.work_end = at(13);
    recording.domains.push_back(
        {kGpu0, model::DomainKind::kGpu, "gpu0", "a GPU", "", {}, true, ""});
    recording.domains.push_back(
        {kPackage0, model::DomainKind::kCpu, "package-0", "a CPU", "", {}, true, ""});
    recording.idle_spans = {{at(0.5), at(2.9)}, {at(13.5), at(15.9)}};
    recording.sensors = {gpu.counter(), gpu.ring()};
    model::Sensor rapl{kRapl, kPackage0, model::SensorKind::kEnergyCounter, "rapl", {}, {}};
    rapl.traits.refresh = 1ms;
    rapl.traits.wrap = Energy::joules(262143.328850);
    rapl.traits.gain_error = 0.03;
    recording.sensors.push_back(rapl);
    recording.sensors.push_back({kReasons,
                                 kGpu0,
                                 model::SensorKind::kGauge,
                                 std::string(model::gauge::kClockEventReasons),
                                 {},
                                 {}});
    recording.sensors.push_back({kUtilisation,
                                 kGpu0,
                                 model::SensorKind::kGauge,
                                 std::string(model::gauge::kGpuUtilisation),
                                 {},
                                 {}});
    recording.clock_points = {{at(0), RealTime{1'700'000'000s}, {}},
                              {at(16), RealTime{1'700'000'016s}, {}}};
  }

  void read_gpu(double until = 16) {
    power.hold(120, 3);
    power.hold(500, 10);
    power.hold(120, 4);
    recording.readings.powers = gpu.samples(power, 0, until);
    recording.readings.counters = gpu.reads(power, 0.1, until);
  }
  void read_cpu(double until = 16) {
    Truth truth;
    truth.hold(40, 3);
    truth.hold(100, 10);
    truth.hold(40, 4);
    for (double t = 0; t < until; t += 0.05) {
      recording.readings.counters.push_back(
          {kRapl, at(t), at(t + 1e-5),
           Energy::joules(262000 + truth.joules(t) - (truth.joules(t) > 143 ? 262143.328850 : 0))});
    }
  }
  // A process of the command's with three quarters of a busy machine's time, others with the rest.
  void add_processes() {
    recording.processes.push_back({ProcessId{7}, 100, {}, 1, "train", "train", at(3), {}, true});
    recording.processes.push_back({ProcessId{8}, 101, {}, 100, "load", "load", at(3), {}, true});
    recording.processes.push_back({ProcessId{9}, 55, {}, 1, "desktop", "", at(0), {}, false});
    for (double t = 2; t <= 14; t += 0.5) {
      const double w = std::clamp(t - 3, 0.0, 10.0);
      auto& p = recording.process_readings;
      p.machine.push_back({at(t), duration_of(100 + 4 * w), duration_of(1000 + 8 * t), 0});
      if (t < 3) continue;
      p.processes.push_back({ProcessId{7}, at(t), duration_of(2 * w), {}, 1000, 900, {}});
      p.processes.push_back(
          {ProcessId{8}, at(t), duration_of(0.5 * w), duration_of(0.5 * w), 500, {}, {}});
    }
  }

  GpuSensors gpu;
  Truth power;
  model::Recording recording;
};

const model::DomainProfile& domain(const model::Profile& profile, model::DomainId id) {
  for (const auto& d : profile.domains) {
    if (d.domain.id == id) return d;
  }
  static const model::DomainProfile none;
  return none;
}

void expect_conserved(const model::Profile& profile) {
  for (const auto& d : profile.domains) {
    if (!d.idle_part) continue;
    Energy sum = *d.idle_part + *d.others + *d.unattributed;
    for (const auto& p : profile.processes) {
      for (const auto& share : p.shares) {
        EXPECT_GE(share.energy, Energy{});
        if (share.domain == d.domain.id) sum += share.energy;
      }
    }
    EXPECT_EQ(sum, d.energy->energy) << d.domain.device;
    EXPECT_EQ(d.balance.parts, sum) << d.domain.device;
    EXPECT_GE(*d.others, Energy{});
  }
}

Energy share(const model::Profile& profile, ProcessId process, model::DomainId id) {
  for (const auto& p : profile.processes) {
    if (p.process.id != process) continue;
    for (const auto& s : p.shares) {
      if (s.domain == id) return s.energy;
    }
  }
  return {};
}

TEST(Analyse, TellsEnergyIdlePowerAndBalanceOfARun) {
  Recorded run;
  run.read_gpu();
  run.read_cpu();
  const auto profile = analyse(run.recording);
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
  EXPECT_NEAR(gpu.idle->energy.joules(), 1200, 5);
  EXPECT_NEAR(gpu.balance.counter->joules(), 5000, 40);
  EXPECT_NEAR(gpu.balance.integral->joules(), 5000, 20);

  const auto& cpu = domain(*profile, kPackage0);
  ASSERT_TRUE(cpu.energy) << cpu.reason;
  EXPECT_NEAR(cpu.energy->energy.joules(), 1000, 3);  // the counter wrapped within
  EXPECT_EQ(cpu.energy->method, "counter");
  EXPECT_NEAR(cpu.idle->energy.joules(), 400, 2);
  EXPECT_THAT(profile->warnings, IsEmpty());
  EXPECT_FALSE(profile->simulated);
  expect_conserved(*profile);
}

TEST(Analyse, ACpuThatWasBusyBeforeHasNoIdlePower) {
  for (const double use : {0.1, 0.5}) {
    Recorded run;
    run.read_gpu();
    run.read_cpu();
    for (double t = 0; t <= 16; t += 0.5) {
      run.recording.process_readings.machine.push_back(
          {at(t), duration_of(8 * use * t), duration_of(8 * t), 0});
    }
    const auto profile = analyse(run.recording);
    ASSERT_TRUE(profile);
    EXPECT_EQ(domain(*profile, kPackage0).idle.has_value(), use < 0.25) << use;
  }
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
  const auto profile = analyse(run.recording);
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
    const auto part = analyse(run.recording, {duration_of(from), duration_of(from + 1.1)});
    ASSERT_TRUE(part);
    expect_conserved(*part);
  }
}

TEST(Analyse, APartAndTheRestSumToTheWhole) {
  Recorded run;
  run.read_gpu();
  const auto whole = analyse(run.recording);
  const auto first = analyse(run.recording, {{}, duration_of(4.2345)});
  const auto second = analyse(run.recording, {duration_of(4.2345), {}});
  ASSERT_TRUE(whole && first && second);
  EXPECT_EQ(domain(*first, kGpu0).energy->energy + domain(*second, kGpu0).energy->energy,
            domain(*whole, kGpu0).energy->energy);
  EXPECT_NEAR(domain(*first, kGpu0).energy->energy.joules(), 2117.25, 3);
}

TEST(Analyse, ASingleGpuProcessGetsItAllAndSeveralUnknownNothing) {
  Recorded run;
  run.read_gpu();
  run.add_processes();
  auto& gpu = run.recording.process_readings.gpu_processes;
  for (double t = 3.5; t <= 14; t += 1) gpu.push_back({ProcessId{7}, kGpu0, at(t), {}, 1 << 20});
  auto profile = analyse(run.recording);
  ASSERT_TRUE(profile);
  expect_conserved(*profile);
  EXPECT_NEAR(share(*profile, ProcessId{7}, kGpu0).joules(), 3800, 15);
  EXPECT_EQ(*domain(*profile, kGpu0).unattributed, Energy{});

  for (double t = 3.5; t <= 14; t += 1) gpu.push_back({ProcessId{8}, kGpu0, at(t), {}, 1 << 20});
  profile = analyse(run.recording);
  ASSERT_TRUE(profile);
  expect_conserved(*profile);
  EXPECT_EQ(share(*profile, ProcessId{7}, kGpu0), Energy{});
  EXPECT_NEAR(domain(*profile, kGpu0).unattributed->joules(), 3800, 15);
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("several processes")));
}

TEST(Analyse, ALostGpuHasNoEnergyButAReason) {
  Recorded run;
  run.read_gpu(8);
  run.read_cpu();
  run.recording.readings.failures.push_back(
      {kCounter, at(8), {Errc::kUnavailable, "the GPU has fallen off the bus (GPU_IS_LOST)"}});
  const auto profile = analyse(run.recording);
  ASSERT_TRUE(profile);
  const auto& gpu = domain(*profile, kGpu0);
  EXPECT_FALSE(gpu.energy);
  EXPECT_FALSE(gpu.balance.parts);
  EXPECT_THAT(gpu.reason, HasSubstr("5.0 s after the work began"));
  EXPECT_THAT(gpu.reason, HasSubstr("after 250"));  // joules until then
  EXPECT_THAT(gpu.reason, HasSubstr("GPU_IS_LOST"));
  EXPECT_TRUE(domain(*profile, kPackage0).energy);
}

TEST(Analyse, ADomainWithoutSensorSaysWhy) {
  Recorded run;
  run.read_gpu();
  run.recording.domains[1].unavailable_reason = "only root may read it";
  const auto profile = analyse(run.recording);
  ASSERT_TRUE(profile);
  EXPECT_FALSE(domain(*profile, kPackage0).energy);
  EXPECT_EQ(domain(*profile, kPackage0).reason, "only root may read it");
}

TEST(Analyse, UnknownIdleIsAbsentNotZero) {
  Recorded run;
  run.read_gpu();
  run.recording.idle_spans.clear();
  const auto profile = analyse(run.recording);
  ASSERT_TRUE(profile);
  EXPECT_TRUE(domain(*profile, kGpu0).energy);
  EXPECT_FALSE(domain(*profile, kGpu0).idle);
  EXPECT_FALSE(domain(*profile, kGpu0).idle_part);
  EXPECT_FALSE(domain(*profile, kGpu0).unattributed);
}

TEST(Analyse, ABusyGpuIsNotIdle) {
  Recorded run;
  run.read_gpu();
  for (double t = 0; t < 16; t += 0.5) {
    run.recording.readings.gauges.push_back({kUtilisation, at(t), 0.5});
  }
  const auto profile = analyse(run.recording);
  ASSERT_TRUE(profile);
  EXPECT_FALSE(domain(*profile, kGpu0).idle);
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("idle is unknown")));
}

TEST(Analyse, IdleThatDiffersAfterTheWorkWidensTheInterval) {
  Recorded run;
  run.power.hold(120, 3);
  run.power.hold(500, 10);
  run.power.hold(150, 4);
  run.recording.readings.powers = run.gpu.samples(run.power, 0, 16);
  run.recording.readings.counters = run.gpu.reads(run.power, 0.1, 16);
  const auto profile = analyse(run.recording);
  ASSERT_TRUE(profile);
  const auto& gpu = domain(*profile, kGpu0);
  EXPECT_NEAR(gpu.idle->energy.joules(), 1200, 5);
  EXPECT_GE(gpu.idle->energy + gpu.idle->repeatability, Energy::joules(1500));
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("idle power was 120")));
}

TEST(Analyse, WorkBelowIdleIsIdleAltogether) {
  Recorded run;
  run.power.hold(120, 3);
  run.power.hold(90, 10);
  run.power.hold(120, 4);
  run.recording.readings.powers = run.gpu.samples(run.power, 0, 16);
  run.recording.readings.counters = run.gpu.reads(run.power, 0.1, 16);
  const auto profile = analyse(run.recording);
  ASSERT_TRUE(profile);
  const auto& gpu = domain(*profile, kGpu0);
  EXPECT_NEAR(gpu.idle->energy.joules(), 1200, 5);
  EXPECT_EQ(gpu.idle_part, gpu.energy->energy);
  EXPECT_EQ(gpu.unattributed, Energy{});
  expect_conserved(*profile);
}

TEST(Analyse, WarnsOfWhatTheRecordingShows) {
  Recorded run;
  run.gpu.gain = 1.1;
  run.read_gpu();
  run.recording.run.complete = false;
  run.recording.warnings.push_back({at(4), "the disk was full"});
  run.recording.clock_points = {{at(0), RealTime{100s}, {}},
                                {at(5), RealTime{105s}, {}},
                                {at(6), RealTime{136s}, 30s},
                                {at(7), RealTime{237s}, 30s}};
  for (double t = 3.5; t < 13; t += 1) {
    run.recording.readings.gauges.push_back({kReasons, at(t), t < 8 ? 4.0 : 0.0});
  }
  const auto profile = analyse(run.recording);
  ASSERT_TRUE(profile);
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("cut off")));
  EXPECT_THAT(profile->warnings, Contains("the disk was full"));
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("suspended for 30.0 s")));
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("set by +100.0 s")));
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("power limit in 50 %")));
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("+10.")));
  EXPECT_NEAR(domain(*profile, kGpu0).energy->energy.joules(), 5000, 10);
}

TEST(Analyse, ARecordingCutOffEndsWhereAllSourcesStillSpoke) {
  Recorded run;
  run.read_gpu(9);
  run.read_cpu(11);
  run.recording.run.work_end.reset();
  run.recording.run.complete = false;
  const auto profile = analyse(run.recording);
  ASSERT_TRUE(profile);
  ASSERT_TRUE(domain(*profile, kGpu0).energy) << domain(*profile, kGpu0).reason;
  ASSERT_TRUE(domain(*profile, kPackage0).energy);
  EXPECT_NEAR(seconds(profile->duration()), 6, 0.1);
  EXPECT_NEAR(domain(*profile, kGpu0).mean_power->watts(), 500, 2);
}

TEST(Analyse, SimulatedSensorsMarkTheProfile) {
  Recorded run;
  run.read_gpu();
  for (auto& s : run.recording.sensors) s.provenance = model::Provenance::kSimulated;
  const auto profile = analyse(run.recording);
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
  model.traits.gain_error = 0.4;
  run.recording.sensors.push_back(model);
  for (double t = 0; t < 16; t += 0.5) {
    run.recording.readings.powers.push_back({kRapl, at(t), Power::watts(50)});
  }
  const auto profile = analyse(run.recording);
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
  const auto empty = analyse(run.recording, {duration_of(5), duration_of(5)});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, Errc::kInvalidArgument);
  const auto outside = analyse(run.recording, {duration_of(5), duration_of(500)});
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().code, Errc::kInvalidArgument);
  const auto nothing = analyse(model::Recording{});
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, Errc::kCorrupt);
}

TEST(PowerCurve, CoversTheRecordingWithSteps) {
  Recorded run;
  run.read_gpu();
  const auto curve = power_curve(run.recording, kGpu0, 100ms);
  ASSERT_GT(curve.size(), 150u);
  for (std::size_t i = 1; i < curve.size(); ++i) EXPECT_EQ(curve[i].begin, curve[i - 1].end);
  double peak = 0;
  for (const auto& step : curve) {
    peak = std::max(peak, step.power.watts());
    if (step.begin > at(4) && step.end < at(12)) {
      EXPECT_NEAR(step.power.watts(), 500, 10);
    }
  }
  EXPECT_LT(peak, 520);
  EXPECT_THAT(power_curve(run.recording, kPackage0, 100ms), IsEmpty());
}

}  // namespace
}  // namespace jouleprof::analysis
