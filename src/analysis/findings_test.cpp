// Findings of profiles and traces whose figures are known.
#include "analysis/findings/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/timeline/simulated_sensors_test.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using model::Finding;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr model::SensorId kUtilisation{30};
constexpr model::SensorId kReasons{31};

// A GPU for 100 s: 80 W at rest, 130 W held for all the time, 10 kJ of active energy.
struct Analysed {
  model::Recording recording;
  model::Profile profile;
  std::vector<model::ActivityProfile> activity;
  BoardLevels levels;  // of each board
  HostTime program_end = at(100);

  Analysed() {
    levels.held_spans = {{at(0), at(100)}};
    model::DomainProfile d;
    d.domain = {kGpu0, model::DomainKind::kGpu, "gpu0", "", "GPU-1", {}, true, ""};
    d.energy = measurement(23'000, 10);
    d.levels.rest = measurement(8'000, 5);
    d.levels.held = measurement(5'000, 5);
    d.levels.active = measurement(10'000, 10);
    d.levels.held_time = 100s;
    d.rest_power = model::PowerLevel{Power::watts(80), Power::watts(0.2), "", true, {}};
    d.held_power = model::PowerLevel{Power::watts(130), Power::watts(0.5), "", true, {}};
    profile.begin = at(0);
    profile.end = at(100);
    profile.domains = {d};
    recording.domains = {d.domain};
    for (const auto& [id, name] : {std::pair{kUtilisation, model::gauge::kGpuUtilisation},
                                   std::pair{kReasons, model::gauge::kClockEventReasons}}) {
      recording.sensors.push_back(
          {id, kGpu0, model::SensorKind::kGauge, std::string(name), {}, {}});
    }
  }
  static model::Measurement measurement(double joules, double error) {
    model::Measurement m;
    m.energy = Energy::joules(joules);
    m.error = m.repeatability = Energy::joules(error);
    return m;
  }
  void gauge(model::SensorId id, double first, double later, double until) {
    for (double t = 0.5; t < 100; t += 1) {
      recording.readings.gauges.push_back({id, at(t), t < until ? first : later});
    }
  }
  // Launches of `length` seconds for `busy` seconds, the last one at `end`.
  model::ActivityProfile& trace(double busy, double length, double end = 100) {
    auto& a = activity.emplace_back();
    a.domain = recording.domains[0];
    a.begin = at(0);
    a.end = at(end);
    a.measured = *profile.domains[0].energy;
    a.launches = static_cast<std::uint64_t>(busy / length);
    a.by_process = {{0, 1, a.launches, duration_of(busy), {}, {}}};
    return a;
  }
  void kernel(const char* name, model::ActivityKind kind, double joules, double error) {
    auto& row = activity.back().by_kernel.emplace_back();
    row.kernel = model::KernelClass{};
    row.kernel->kind = kind;
    row.kernel->name = name;
    row.launches = 10;
    row.energy = measurement(joules, error);
  }
  std::vector<Finding> find() const {
    const std::vector<BoardLevels> all(profile.domains.size(), levels);
    return findings_of(recording, profile, activity, all, program_end);
  }
};

std::vector<std::string> codes(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const auto& f : findings) out.push_back(f.code);
  return out;
}

TEST(Findings, ABoardThatIsHeldAndWaitsComesFirst) {
  Analysed job;
  job.trace(5, 1e-3);
  const auto found = job.find();
  ASSERT_THAT(codes(found), ElementsAre("waiting"));
  // Of the balance's held energy, and not of what the board draws at rest.
  EXPECT_EQ(found[0].energy.energy, Energy::joules(0.95 * 5'000));
  EXPECT_EQ(found[0].energy.error, Energy::joules(0.95 * 5));
  EXPECT_LT(found[0].energy.energy, job.profile.domains[0].levels.held->energy);
  EXPECT_THAT(found[0].text, HasSubstr("95.0 s while nothing ran, 95 %"));
  EXPECT_FALSE(found[0].estimated);
  EXPECT_THAT(found[0].next_step, HasSubstr("data-loading workers"));
}

TEST(Findings, TimeOfKernelsWithoutARecordIsNoWaiting) {
  Analysed job;
  job.trace(5, 1e-5).unrecorded = 60s;
  const auto found = job.find();
  ASSERT_THAT(codes(found), ElementsAre("waiting"));
  EXPECT_THAT(found[0].text, HasSubstr("35.0 s while nothing ran, 35 %"));
  EXPECT_THAT(found[0].text, Not(HasSubstr("its launches take")));
  job.activity[0].unrecorded = 95s;
  EXPECT_THAT(job.find(), IsEmpty());
}

TEST(Findings, TheIntervalHasTheCalibrationError) {
  Analysed job;
  job.trace(5, 1e-3);
  job.profile.domains[0].levels.held->error = Energy::joules(250);  // 5 %
  const auto found = job.find();
  ASSERT_THAT(codes(found), ElementsAre("waiting"));
  EXPECT_NEAR(found[0].energy.error.joules(), 0.05 * 50 * 95, 6);
}

TEST(Findings, OfAllHeldEnergyTheIntervalIsTheBalances) {
  Analysed job;
  job.trace(0, 1e-3);
  auto& held = *job.profile.domains[0].levels.held;
  held.error = Energy::joules(400);
  held.shift = 0.03;
  const auto found = job.find();
  ASSERT_THAT(codes(found), ElementsAre("waiting"));
  EXPECT_EQ(found[0].energy.energy, held.energy);
  EXPECT_EQ(found[0].energy.low(), held.low());
  EXPECT_EQ(found[0].energy.high(), held.high());
}

TEST(Findings, ShortLaunchesAreNamedAsTheCause) {
  Analysed job;
  job.trace(50, 5e-6);
  const auto found = job.find();
  ASSERT_THAT(codes(found), ElementsAre("waiting"));
  EXPECT_THAT(found[0].text, HasSubstr("5.0 us on average"));
  EXPECT_THAT(found[0].next_step, HasSubstr("CUDA graphs"));
}

TEST(Findings, AContextThatIsKeptIsItsOwnFinding) {
  Analysed job;
  job.trace(60, 1e-3, 60);
  const auto found = job.find();
  ASSERT_THAT(codes(found), ElementsAre("context_kept"));
  EXPECT_EQ(found[0].energy.energy, Energy::joules(50 * 40));
}

// The GPU's program ended at 60.5 s, and another without a GPU ran until 100 s.
TEST(Findings, AContextThatEndedWithItsProgramWasNotKept) {
  Analysed job;
  job.trace(55, 1e-3, 60);
  job.levels.held_spans = {{at(0), at(60.5)}};
  job.profile.domains[0].levels.held_time = duration_of(60.5);
  job.profile.domains[0].levels.held = Analysed::measurement(50 * 60.5, 5);
  EXPECT_THAT(codes(job.find()), IsEmpty());
  job.levels.held_spans->back().end = at(80);
  job.profile.domains[0].levels.held_time = 80s;
  job.profile.domains[0].levels.held = Analysed::measurement(50 * 80, 5);
  job.profile.domains[0].energy = Analysed::measurement(15'000, 10);
  const auto found = job.find();
  ASSERT_THAT(codes(found), ElementsAre("context_kept"));
  EXPECT_EQ(found[0].energy.energy, Energy::joules(50 * 20));
  EXPECT_THAT(found[0].text, HasSubstr("for 20.0 s after the last launch"));
}

TEST(Findings, InAPartOfTheWorkTheLastLaunchMayBeFollowedByOthers) {
  Analysed job;
  job.trace(60, 1e-3, 60);
  job.program_end = at(200);
  ASSERT_THAT(codes(job.find()), ElementsAre("context_kept"));
  auto& trace = job.recording.traces.emplace_back();
  trace.devices.emplace_back().uuid = "GPU-1";
  trace.chunks.push_back({model::ChunkKind::kBins, 0, at(110), at(111), ""});
  const auto found = job.find();
  ASSERT_THAT(codes(found), ElementsAre("waiting"));
  EXPECT_EQ(found[0].energy.energy, Energy::joules(50 * 40));
  trace.chunks.back().begin = at(201);  // a re-run
  trace.chunks.back().end = at(202);
  EXPECT_THAT(codes(job.find()), ElementsAre("context_kept"));
}

TEST(Findings, TheProcessorsShareIsUnknownWhereAGpuHasNoEnergy) {
  Analysed job;
  auto& cpu = job.profile.domains.emplace_back();
  cpu.domain = {model::DomainId{7}, model::DomainKind::kCpu, "package-0", "", "", {}, true, ""};
  cpu.energy = Analysed::measurement(20'000, 10);
  EXPECT_THAT(codes(job.find()), ElementsAre("processors"));
  auto& lost = job.profile.domains.emplace_back();
  lost.domain = {model::DomainId{8}, model::DomainKind::kGpu, "gpu1", "", "GPU-2", {}, true, ""};
  lost.least.emplace().energy = Energy::joules(100'000);
  EXPECT_THAT(codes(job.find()), IsEmpty());
  lost.domain.visible = false;
  EXPECT_THAT(codes(job.find()), ElementsAre("processors"));
}

TEST(Findings, WithoutATraceWaitingIsEstimatedFromUtilisation) {
  Analysed job;
  job.gauge(kUtilisation, 0, 0.9, 60);
  const auto found = job.find();
  ASSERT_THAT(codes(found), ElementsAre("waiting"));
  EXPECT_NEAR(found[0].energy.energy.joules(), 50 * 60, 1);
  EXPECT_TRUE(found[0].estimated);
  EXPECT_GT(found[0].energy.error, Energy::joules(50 * 5));
}

// Of the 5 kJ that the board was held with, others' contexts have 3.
TEST(Findings, OfABoardThatOthersHoldTheEnergyIsTheCommandsPart) {
  Analysed job;
  job.gauge(kUtilisation, 0, 0, 100);
  job.profile.domains[0].others = Energy::joules(3000);
  EXPECT_THAT(codes(job.find()), IsEmpty());  // none is known to be its own
  auto& process = job.profile.processes.emplace_back();
  process.shares.push_back({kGpu0, Energy::joules(2000), {}, {}, Energy::joules(2000), {}});
  const auto found = job.find();
  ASSERT_THAT(codes(found), ElementsAre("waiting"));
  EXPECT_NEAR(found[0].energy.energy.joules(), 2000, 1);
}

TEST(Findings, ABusyBoardHasNone) {
  Analysed job;
  job.trace(99, 1e-3);
  job.kernel("memcpy", model::ActivityKind::kMemcpy, 200, 10);
  job.gauge(kReasons, 0, 0, 100);
  EXPECT_THAT(job.find(), IsEmpty());
}

TEST(Findings, NothingWithinItsOwnErrorIsReported) {
  Analysed job;
  job.trace(50, 1e-3);
  job.kernel("memcpy", model::ActivityKind::kMemcpy, 2'000, 2'100);
  ASSERT_THAT(codes(job.find()), ElementsAre("waiting"));
  job.profile.domains[0].levels.held->error = Energy::joules(6'000);
  EXPECT_THAT(job.find(), IsEmpty());
}

TEST(Findings, CopiesAndCollectivesHaveTheirEnergy) {
  Analysed job;
  job.trace(99, 1e-3);
  job.kernel("", model::ActivityKind::kMemcpy, 1'500, 50);
  job.kernel("ncclDevKernel_AllReduce_Sum_f32", model::ActivityKind::kKernel, 2'500, 80);
  job.kernel("gemm", model::ActivityKind::kKernel, 6'000, 80);
  const auto found = job.find();
  ASSERT_THAT(codes(found), ElementsAre("collectives", "copies"));
  EXPECT_EQ(found[0].energy.energy, Energy::joules(2'500));
  EXPECT_EQ(found[1].energy.error, Energy::joules(50));
}

TEST(Findings, LimitsAreTheirShareOfTheActiveEnergy) {
  Analysed job;
  job.trace(99, 1e-3);
  job.gauge(kReasons, 4, 0, 40);
  const auto found = job.find();
  ASSERT_THAT(codes(found), ElementsAre("power_limit"));
  EXPECT_NEAR(found[0].energy.energy.joules(), 4'000, 1);
  EXPECT_TRUE(found[0].estimated);
}

TEST(Findings, ALayerFarAboveTheOthersIsNamed) {
  Analysed job;
  auto& a = job.trace(99, 1e-3);
  for (int i = 0; i < 6; ++i) {
    auto& row = a.by_layer.emplace_back();
    row.name = "layer" + std::to_string(i);
    row.macs = 1e9;
    row.count = 100;
    row.energy = Analysed::measurement(i == 4 ? 5'000 : 700, 70);
  }
  const auto found = job.find();
  ASSERT_THAT(codes(found), ElementsAre("layer"));
  EXPECT_THAT(found[0].text, HasSubstr("layer4 takes 7.1 times"));
}

TEST(Findings, AtMostFiveAreReported) {
  Analysed job;
  for (int i = 1; i < 8; ++i) {
    auto other = job.profile.domains[0];
    other.domain.id = model::DomainId{static_cast<std::uint32_t>(i)};
    job.profile.domains.push_back(other);
  }
  for (const auto& d : job.profile.domains) {
    job.trace(5, 1e-3).domain = d.domain;
  }
  EXPECT_EQ(job.find().size(), 5u);
}

}  // namespace
}  // namespace jouleprof::analysis
