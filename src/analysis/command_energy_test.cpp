#include <fmt/format.h>
#include <gmock/gmock.h>

#include "analysis/energy_split.h"
#include "analysis/recorded_run_test.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis {
namespace {

using model::ProcessId;
using simulated::at;
using simulated::domain;
using simulated::kGpu0;
using simulated::kPackage0;
using simulated::Recorded;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

// Ten seconds: a GPU at 120 W at rest that works at 500 W, and a package at 40 and 100 W, of which
// the command has three quarters of the CPU time.
struct Shared : Recorded {
  Shared() {
    read_gpu();
    read_cpu();
    add_processes();
  }
  void list(ProcessId process, double utilisation) {
    for (double t = 3.5; t <= 14; t += 1) {
      recording.process_readings.gpu_processes.push_back(
          {process, kGpu0, at(t), utilisation, 1 << 20});
    }
  }
  model::Profile profile() const {
    auto made = profile_of(recording);
    EXPECT_TRUE(made);
    if (made) simulated::expect_conserved(*made);
    return made ? *made : model::Profile{};
  }
};

void expect_exact(const model::DomainProfile& d) {
  ASSERT_TRUE(d.command);
  EXPECT_EQ(d.command->energy.energy, d.command->processes + d.command->rest.value_or(Energy{}));
  EXPECT_EQ(*d.idle_part + d.command->processes + *d.others + d.held_unowned.value_or(Energy{}) +
                *d.unattributed,
            d.energy->energy);
  EXPECT_LE(d.command->low(), d.command->energy.energy);
  EXPECT_GE(d.command->high(), d.command->energy.energy);
}

TEST(CommandEnergy, HasTheRestOfABoardThatNoOtherFamilyUsed) {
  Shared run;
  run.list(ProcessId{7}, 0.9);
  const auto profile = run.profile();
  const auto& gpu = domain(profile, kGpu0);
  expect_exact(gpu);
  EXPECT_NEAR(gpu.command->processes.joules(), 3800, 20);
  ASSERT_TRUE(gpu.command->rest);
  EXPECT_NEAR(gpu.command->rest->joules(), 1200, 20);
  // All of it: as certain as the whole.
  EXPECT_EQ(gpu.command->energy.energy, gpu.energy->energy);
  EXPECT_EQ(gpu.command->undivided, Energy{});
  EXPECT_NEAR(gpu.command->energy.error.joules(), gpu.energy->error.joules(), 1e-3);
  EXPECT_EQ(gpu.command->energy.provenance, model::Provenance::kMeasured);
}

// Of 8 CPUs at 10 W each others use 1.5 all the time, and the command 2.5 or 0.3 for ten seconds.
TEST(CommandEnergy, IsTheCommandsWhereOthersWorkedBeforeIt) {
  for (const double own : {2.5, 0.3}) {
    SCOPED_TRACE(own);
    Recorded run;
    run.add_processes();
    auto& readings = run.recording.process_readings;
    readings.clear();
    simulated::Truth truth;
    truth.hold(55, 3);
    truth.hold(55 + 10 * own, 10);
    truth.hold(55, 4);
    for (double t = 0; t < 16; t += 0.05) {
      run.recording.readings.counters.push_back(
          {simulated::kRapl, at(t), at(t + 1e-5), Energy::joules(7 + truth.joules(t))});
    }
    for (double t = 0.5; t <= 16; t += 0.5) {
      const double used = own * std::clamp(t - 3, 0.0, 10.0);
      readings.machine.push_back(
          {at(t), duration_of(100 + 1.5 * t + used), duration_of(1000 + 8 * t), 0});
      if (t >= 3)
        readings.processes.push_back({ProcessId{7}, at(t), duration_of(used), {}, {}, {}, {}});
    }
    const auto profile = profile_of(run.recording);
    ASSERT_TRUE(profile);
    const auto& cpu = domain(*profile, kPackage0);
    ASSERT_TRUE(cpu.command && cpu.rest_power);
    EXPECT_NEAR(cpu.rest_power->power.watts(), 40, 0.5);
    EXPECT_NEAR(cpu.command->processes.joules(), 100 * own, 5);
    EXPECT_NEAR(cpu.others->joules(), 150, 5);
    EXPECT_FALSE(cpu.command->rest);  // others used more than a tenth
    EXPECT_LE(cpu.command->low(), Energy::joules(100 * own));
    EXPECT_GE(cpu.command->high(), Energy::joules(100 * own));
  }
}

// Two sockets at 40 W at rest. The command has three quarters of the CPU time, all of it on the
// first one; others work on the second.
TEST(CommandEnergy, OfASocketHoldsThatAllOfItWasOnOne) {
  Recorded run;
  run.add_processes();
  auto& r = run.recording;
  const model::DomainId second{2};
  const model::SensorId meter{12};
  r.domains.push_back({second, model::DomainKind::kCpu, "package-1", "a CPU", "", {}, true, ""});
  r.sensors.push_back(r.sensors[2]);
  r.sensors.back().id = meter;
  r.sensors.back().domain = second;
  simulated::Truth own;
  simulated::Truth others;
  for (auto* truth : {&own, &others}) {
    truth->hold(40, 3);
    truth->hold(truth == &own ? 85 : 55, 10);
    truth->hold(40, 4);
  }
  for (double t = 0; t < 16; t += 0.05) {
    const auto read = [&](model::SensorId sensor, const simulated::Truth& truth) {
      r.readings.counters.push_back(
          {sensor, at(t), at(t + 1e-5), Energy::joules(7 + truth.joules(t))});
    };
    read(simulated::kRapl, own);
    read(meter, others);
  }
  const auto profile = profile_of(r);
  ASSERT_TRUE(profile);
  std::optional<model::CommandEnergy> sum;
  for (const auto id : {kPackage0, second}) {
    const auto& d = domain(*profile, id);
    ASSERT_TRUE(d.command && d.command_bounds);
    const Energy truth =
        Energy::joules(id == kPackage0 ? 450 : 0) + d.command->rest.value_or(Energy{});
    EXPECT_LE(d.command->low(), truth);
    EXPECT_GE(d.command->high(), truth);
    EXPECT_GT(d.command->repeatability(), d.command->energy.repeatability);
    EXPECT_LE(d.command_bounds->low, Energy::joules(id == kPackage0 ? 450 : 0));
    EXPECT_GE(d.command_bounds->high, Energy::joules(id == kPackage0 ? 449 : 0));
    model::add(sum, *d.command);
  }
  // On both together it was as certain as on a machine of one socket.
  EXPECT_FALSE(sum->on_socket);
  EXPECT_NEAR(sum->processes.joules(), 450, 5);
  EXPECT_GT(sum->low() - sum->rest.value_or(Energy{}), Energy::joules(300));
}

// A package that draws less than it did at rest.
TEST(CommandEnergy, IsNoMoreThanTheDeviceTook) {
  Recorded run;
  run.add_processes();
  simulated::Truth truth;
  truth.hold(100, 3);
  truth.hold(97, 10);
  truth.hold(100, 4);
  for (double t = 0; t < 16; t += 0.05) {
    run.recording.readings.counters.push_back(
        {simulated::kRapl, at(t), at(t + 1e-5), Energy::joules(7 + truth.joules(t))});
  }
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  const auto& cpu = domain(*profile, kPackage0);
  ASSERT_TRUE(cpu.energy && cpu.command && cpu.idle_part);
  EXPECT_GT(*cpu.idle_part, cpu.energy->energy);
  EXPECT_LE(cpu.command->energy.energy, cpu.energy->energy);
  EXPECT_EQ(cpu.command->energy.energy, cpu.command->processes + *cpu.command->rest);
}

// Of one board, the memory has the same owners. Another process used a little of it, or MIG divides
// it.
TEST(CommandEnergy, HasTheRestOfMemoryWhereItHasThatOfTheBoard) {
  for (const auto& [is_used, is_divided] :
       {std::pair{false, false}, {true, false}, {false, true}}) {
    SCOPED_TRACE(fmt::format("{} {}", is_used, is_divided));
    Shared run;
    run.list(ProcessId{7}, 0.9);
    if (is_used)
      run.recording.process_readings.gpu_processes.push_back(
          {ProcessId{9}, kGpu0, at(4.5), 0.02, 1 << 20});
    const model::DomainId memory{9};
    run.recording.domains.push_back(
        {memory, model::DomainKind::kGpuMemory, "gpu0", "a GPU", "", kGpu0, true, ""});
    if (is_divided)
      run.recording.domains.push_back({model::DomainId{10}, model::DomainKind::kGpu, "gpu0:mig0",
                                       "", "MIG-0", kGpu0, true, ""});
    auto ring = run.gpu.ring();
    ring.id = model::SensorId{9};
    ring.domain = memory;
    run.recording.sensors.push_back(ring);
    auto& powers = run.recording.readings.powers;
    for (std::size_t i = 0, all = powers.size(); i < all; ++i) {
      auto r = powers[i];
      r.sensor = ring.id;
      powers.push_back(r);
    }
    const auto profile = run.profile();
    const auto& gpu = domain(profile, kGpu0);
    const auto& of_memory = domain(profile, memory);
    ASSERT_TRUE(gpu.command && of_memory.command && of_memory.idle_part);
    EXPECT_EQ(gpu.command->rest.has_value(), !is_used && !is_divided);
    EXPECT_EQ(of_memory.command->rest.has_value(), !is_used && !is_divided);
  }
}

// Another's process may have begun and ended in the gap.
TEST(CommandEnergy, HasTheRestInDoubtWhereListsAreMissing) {
  Shared run;
  run.list(ProcessId{7}, 0.9);
  std::erase_if(run.recording.process_readings.gpu_processes,
                [](const auto& r) { return r.at > at(6) && r.at < at(10); });
  const auto profile = run.profile();
  const auto& gpu = domain(profile, kGpu0);
  expect_exact(gpu);
  EXPECT_NEAR(gpu.command->rest->joules(), 1200, 20);
  EXPECT_LT(gpu.command->low(), gpu.command->energy.energy - Energy::joules(1200));
  EXPECT_LE(gpu.command->high(), gpu.energy->high());
}

TEST(CommandEnergy, LacksTheRestOfADeviceThatOthersUsed) {
  Shared run;
  run.list(ProcessId{7}, 0.6);
  run.list(ProcessId{9}, 0.2);
  const auto profile = run.profile();
  for (const auto id : {kGpu0, kPackage0}) {
    const auto& d = domain(profile, id);
    SCOPED_TRACE(d.domain.device);
    expect_exact(d);
    EXPECT_FALSE(d.command->rest);
    EXPECT_GT(*d.others, Energy{});
    EXPECT_EQ(d.command->energy.energy, d.command->processes);
    EXPECT_EQ(d.command->energy.provenance, model::Provenance::kEstimated);
    // Were a unit of the others' use to draw twice the power of the command's, or half of it.
    const double own = d.command->processes.joules();
    const double others = d.others->joules();
    const double all = own + others;
    EXPECT_LE(d.command->low().joules(), all * own / (own + 2.0 * others));
    EXPECT_GE(d.command->high().joules(), all * own / (own + 0.5 * others));
  }
}

TEST(CommandEnergy, OthersOfATenthOrLessAreAMachinesOwn) {
  Shared run;
  // The desktop has nearly nothing: the command's processes have all but 2 % of the CPU time.
  for (auto& r : run.recording.process_readings.machine) {
    const double w = std::clamp(seconds(r.at - at(3)), 0.0, 10.0);
    r.busy_cpu_time = duration_of(100 + 3.06 * w);
  }
  const auto profile = run.profile();
  const auto& package = domain(profile, kPackage0);
  expect_exact(package);
  ASSERT_GT(*package.others, Energy{});
  ASSERT_TRUE(package.command->rest);
  EXPECT_NEAR(package.command->energy.energy.joules(), 400 + 588, 5);
}

TEST(CommandEnergy, EnergyOfNoKnownProcessIsOnTopOfItsInterval) {
  Shared run;
  run.list(ProcessId{7}, 0.5);
  run.list(ProcessId{8}, 0.5);
  for (auto& r : run.recording.process_readings.gpu_processes) r.compute_utilisation.reset();
  const auto profile = run.profile();
  const auto& gpu = domain(profile, kGpu0);
  expect_exact(gpu);
  if (*gpu.unattributed > Energy::joules(1)) {
    EXPECT_EQ(gpu.command->undivided, *gpu.unattributed);
    EXPECT_GE(gpu.command->high(), gpu.command->processes + *gpu.unattributed);
    EXPECT_EQ(gpu.command->energy.provenance, model::Provenance::kEstimated);
  }
}

// Utilisation counts time and not watts: what the division leaves open is in the interval.
TEST(CommandEnergy, HoldsTheBoundsOfTheDivision) {
  for (const double use : {0.2, 0.5, 0.8}) {
    Shared run;
    run.list(ProcessId{7}, use);
    run.list(ProcessId{9}, 0.95 - use);
    const auto profile = run.profile();
    const auto& gpu = domain(profile, kGpu0);
    expect_exact(gpu);
    ASSERT_TRUE(gpu.command_bounds);
    const Energy rest = gpu.command->rest.value_or(Energy{});
    EXPECT_LE(gpu.command->low(), gpu.command_bounds->low + rest) << use;
    EXPECT_GE(gpu.command->high(), gpu.command_bounds->high + rest) << use;
    EXPECT_LT(gpu.command_bounds->low, gpu.command->processes);
  }
}

// What a division leaves open may be more than all others have.
TEST(CommandEnergy, IsNeverAboveTheWhole) {
  model::Measurement whole;
  whole.energy = Energy::joules(100);
  whole.error = Energy::joules(5);
  whole.repeatability = Energy::joules(1);
  for (const double undivided : {0.0, 4.0}) {
    model::CommandEnergy own;
    own.processes = Energy::joules(90);
    own.undivided = Energy::joules(undivided);
    set_interval(own, whole, Energy::joules(10 - undivided), Energy::joules(20),
                 Energy::joules(20));
    EXPECT_NEAR(own.high().joules(), 105, 1e-3);
    EXPECT_LT(own.low(), Energy::joules(71));
    EXPECT_GT(own.low(), Energy::joules(55));
    EXPECT_EQ(own.energy.energy, Energy::joules(90));
  }
}

// Of `whole`, what is not the command's is of no known process.
model::CommandEnergy undivided_but(double own_joules, const model::Measurement& whole) {
  model::CommandEnergy own;
  own.processes = Energy::joules(own_joules);
  own.undivided = whole.energy - own.processes;
  set_interval(own, whole, {}, {}, {});
  return own;
}

// The sensor's factor is that of the energy of no known process, too.
TEST(CommandEnergy, IsAtMostTheWholeWithItsCalibrationError) {
  model::Measurement whole;
  whole.energy = Energy::joules(100);
  whole.error = Energy::joules(5);
  whole.repeatability = Energy::joules(0.1);
  for (const double own_joules : {0.0, 40.0}) {
    const auto own = undivided_but(own_joules, whole);
    EXPECT_NEAR(own.high().joules(), 105, 0.1) << own_joules;
    EXPECT_NEAR(own.low().joules(), 0.95 * own_joules, 0.3) << own_joules;
  }
}

// A sensor that reads low reads the energy of no known process low, too.
TEST(CommandEnergy, IsAtMostTheWholeOfASensorThatReadsLow) {
  model::Measurement whole;
  whole.energy = Energy::joules(100);
  whole.error = Energy::joules(16);
  whole.repeatability = Energy::joules(0.1);
  whole.shift = 0.12;
  for (const double own_joules : {0.0, 1.0, 40.0}) {
    const auto own = undivided_but(own_joules, whole);
    EXPECT_NEAR(own.high().joules(), 128, 0.1) << own_joules;
    EXPECT_NEAR(own.low().joules(), 0.96 * own_joules, 0.3) << own_joules;
  }
}

// A command of a millisecond, whose sensor has no reading within it: its bound is not surer than
// the energy that may all be its own.
TEST(CommandEnergy, IsAtMostTheWholeWithItsRepeatability) {
  model::Measurement whole;
  whole.energy = Energy::joules(2);
  whole.error = Energy::joules(300);
  whole.repeatability = Energy::joules(300);
  for (const double own_joules : {0.0, 1.0}) {
    const auto own = undivided_but(own_joules, whole);
    EXPECT_NEAR(own.high().joules(), 302, 0.1) << own_joules;
    EXPECT_GE(own.low(), Energy{}) << own_joules;
  }
}

// Whatever the single utilisations say: all on the board was the command's.
TEST(CommandEnergy, OfAFamilyAloneIsAsCertainAsTheWhole) {
  Shared run;
  run.list(ProcessId{7}, 0.5);
  run.list(ProcessId{8}, 0.0);
  for (double t = 3.1; t < 14; t += 0.5)
    run.recording.readings.gauges.push_back({simulated::kUtilisation, at(t), 0.95});
  const auto profile = run.profile();
  const auto& gpu = domain(profile, kGpu0);
  expect_exact(gpu);
  EXPECT_EQ(gpu.command->energy.energy, gpu.energy->energy);
  ASSERT_TRUE(gpu.command_bounds);
  EXPECT_NEAR(gpu.command_bounds->low.joules(), gpu.command->processes.joules(), 1e-3);
  EXPECT_EQ(gpu.command->energy.error, gpu.energy->error);
}

// A shell's loop of `sleep`, and a process of somebody else for four seconds.
TEST(CommandEnergy, HasNothingOfAnothersWorkWhereItsChildrenUsedNoCpuTime) {
  Shared run;
  auto& r = run.recording;
  r.processes = {{ProcessId{7}, 100, {}, 1, "sh", "sh", at(3), at(13), true}};
  r.process_readings = {};
  auto& readings = r.process_readings;
  for (unsigned i = 0; i < 10; ++i) {
    const ProcessId child{20 + i};
    r.processes.push_back({child,
                           200 + static_cast<pid_t>(i),
                           {},
                           100,
                           "sleep",
                           "sleep 1",
                           at(3 + i),
                           at(4 + i),
                           true});
    readings.processes.push_back({child, at(3.2 + i), duration_of(0.001), {}, {}, {}, {}});
    readings.processes.push_back(
        {ProcessId{7}, at(3.2 + i), duration_of(0.002 * i), duration_of(0.001 * i), {}, {}, {}});
  }
  r.processes.push_back({ProcessId{9}, 55, {}, 1, "other", "", at(0), {}, false});
  constexpr model::SensorId kCount{21};
  r.sensors.push_back(
      {kCount, kGpu0, model::SensorKind::kGauge, std::string(model::gauge::kProcessCount), {}, {}});
  for (double t = 0.5; t < 16; t += 1) {
    const bool is_listed = t > 5 && t < 10;
    r.readings.gauges.push_back({kCount, at(t), is_listed ? 1.0 : 0.0});
    if (!is_listed) continue;
    readings.gpu_processes.push_back({ProcessId{9}, kGpu0, at(t), std::nullopt, 1 << 20});
    readings.processes.push_back({ProcessId{9}, at(t), duration_of(t - 5), {}, {}, {}, {}});
  }
  const auto profile = run.profile();
  const auto& gpu = domain(profile, kGpu0);
  expect_exact(gpu);
  // While the other was listed, and up to the list that no longer has it.
  EXPECT_GT(gpu.others->joules(), 380 * 4.5);
}

// Children that no list names use CPU time, and so do short processes of others, of which a list
// names one.
TEST(CommandEnergy, HasNothingForCertainWhereOthersShortProcessesComeAndGo) {
  constexpr model::SensorId kCount{21};
  for (const bool stranger : {false, true}) {
    Shared run;
    auto& r = run.recording;
    for (double t = 3.5; t <= 14; t += 1) r.readings.gauges.push_back({kCount, at(t), 0});
    r.sensors.push_back({kCount,
                         kGpu0,
                         model::SensorKind::kGauge,
                         std::string(model::gauge::kProcessCount),
                         {},
                         {}});
    r.processes[1].start = at(7.6);
    r.processes[1].end = at(8.4);
    if (stranger) {
      r.process_readings.gpu_processes.push_back({ProcessId{9}, kGpu0, at(5.5), {}, 1 << 20});
    }
    const auto profile = run.profile();
    const auto& gpu = domain(profile, kGpu0);
    ASSERT_TRUE(gpu.command);
    if (stranger) {
      EXPECT_EQ(gpu.command->processes, Energy{});
    } else {
      EXPECT_GT(gpu.command->processes, Energy::joules(50));
    }
  }
}

TEST(CommandEnergy, OfABoardThatWasNeverListedNeedsNoListOfTheOthers) {
  Shared run;
  run.recording.process_readings.processes.push_back(
      {ProcessId{9}, at(14.2), duration_of(1), {}, {}, {}, {}});
  const auto profile = run.profile();
  EXPECT_EQ(domain(profile, kGpu0).command->processes, Energy{});
}

// A bound far below the energy says nothing of what lies above it.
TEST(CommandEnergy, ReachesAsFarOnEachSideAsItsBounds) {
  model::Measurement whole;
  whole.energy = Energy::joules(100);
  whole.error = whole.repeatability = Energy::joules(2);
  model::CommandEnergy own;
  own.processes = Energy::joules(40);
  set_interval(own, whole, Energy{}, Energy::joules(30), Energy::joules(1));
  EXPECT_NEAR(own.low().joules(), 40 - 30.8, 1e-3);
  EXPECT_NEAR(own.high().joules(), 40 + 1.8, 1e-3);
}

TEST(CommandEnergy, OfARecordingWithoutProcessesIsAll) {
  Recorded run;
  run.read_gpu();
  run.recording.run.source = "import:nvidia-smi";
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  const auto& gpu = domain(*profile, kGpu0);
  ASSERT_TRUE(gpu.command);
  EXPECT_FALSE(gpu.command->is_divided);
  EXPECT_EQ(gpu.command->energy.energy, gpu.energy->energy);
  EXPECT_EQ(gpu.command->energy.error, gpu.energy->error);
  EXPECT_EQ(gpu.command->undivided, Energy{});
}

TEST(CommandEnergy, IsAbsentWhereThereIsNoCommand) {
  for (const char* source : {"monitor", "serve"}) {
    Shared run;
    auto& r = run.recording;
    r.run.source = source;
    // Its lists count processes, and name none.
    constexpr model::SensorId kCount{21};
    r.sensors.push_back({kCount,
                         kGpu0,
                         model::SensorKind::kGauge,
                         std::string(model::gauge::kProcessCount),
                         {},
                         {}});
    for (double t = 0.5; t < 16; t += 1) r.readings.gauges.push_back({kCount, at(t), 1});
    const auto profile = run.profile();
    EXPECT_FALSE(domain(profile, kGpu0).command) << source;
    EXPECT_GT(*domain(profile, kGpu0).unattributed, Energy::joules(3000)) << source;
    EXPECT_FALSE(domain(profile, kGpu0).command_bounds) << source;
    EXPECT_THAT(profile.warnings, Each(Not(HasSubstr("processes of the command")))) << source;
    EXPECT_THAT(profile.command_reason, HasSubstr("of a machine")) << source;
  }
  // A program that records by itself has no processes, and other programs may run.
  Recorded run;
  run.read_gpu();
  run.recording.run.source = "library";
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  EXPECT_FALSE(domain(*profile, kGpu0).command);
  EXPECT_THAT(profile->command_reason, HasSubstr("whole devices"));
}

TEST(CommandEnergy, IsOfAllEnergyWhereRestIsUnknown) {
  Shared run;
  run.recording.idle_spans.clear();
  const auto profile = run.profile();
  const auto& package = domain(profile, kPackage0);
  ASSERT_TRUE(package.shares_include_rest);
  ASSERT_TRUE(package.command);
  EXPECT_FALSE(package.command->rest);
  EXPECT_NEAR(package.command->energy.energy.joules(), 750, 5);
}

}  // namespace
}  // namespace jouleprof::analysis
