#include "analysis/kernels/kernel_evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "model/device/sensor.h"

namespace jouleprof::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A kernel that takes 30 us for half of its launches and 10 us for the others.
struct TwoSizes {
  TwoSizes() {
    recording.traces.resize(1);
    table.classes.resize(1);
    table.classes[0].key.name = "_Z4gemmPf";
    table.scope_totals = {{0, model::kNone, 0, 0, 10, 10 * 30e-6},
                          {0, model::kNone, 0, 1, 10, 10 * 10e-6}};
  }

  std::vector<std::string> replayed(double each) {
    ActivityTable::Replay replay;
    replay.begin = 2;
    replay.end = 3;
    replay.slots = slots;
    replay.clock = clock;
    replay.variants = variants;
    replay.ran[0] = {1000, 1000 * each};
    table.replays = {replay};
    observed.resize(3);
    for (std::size_t i = 0; i < 3; ++i) {
      observed[i].begin = 1 + static_cast<double>(i);
      observed[i].end = observed[i].begin + 0.5;
    }
    auto found = drop_deviating_replays(table, SmClocks(recording, {}, table, held), observed);
    deviating = found.deviating;
    loops = found.loops;
    return found.warnings;
  }

  // The program runs from 0 to 1 s at this SM clock.
  void at_clock(double hertz) {
    table.bins.push_back({0, 1, 0});
    table.entries.push_back({0, 0.9F});
    recording.domains.push_back({});
    model::Sensor sensor;
    sensor.kind = model::SensorKind::kGauge;
    sensor.name = model::gauge::kSmClock;
    recording.sensors.push_back(sensor);
    recording.readings.gauges.push_back(
        {sensor.id, HostTime{std::chrono::milliseconds{500}}, hertz});
  }

  model::Recording recording;
  ActivityTable table;
  std::vector<ActivityTable::Replay::ByClass> slots;
  std::map<std::uint32_t, std::uint32_t> variants;
  std::vector<ObservedPower> observed;
  std::vector<DeviatingKernel> deviating;
  std::vector<LoopPower> loops;
  double clock = 0;  // of the re-run
  double held = 0;   // the share of the program's time at a limit
};

TEST(ReplayCheck, AReRunHasTheTimeOfAllLaunchesAndItsName) {
  TwoSizes two;
  EXPECT_THAT(two.replayed(20e-6), IsEmpty());  // the mean of both sizes
  EXPECT_THAT(two.replayed(30e-6), ElementsAre(HasSubstr("gemm(float*) (+50 %)")));
  EXPECT_EQ(two.observed.size(), 2u);
}

TEST(ReplayCheck, SizesOfOneKernelTakeItsTimeTogether) {
  TwoSizes two;
  two.replayed(10e-6);
  ActivityTable::Replay more = two.table.replays[0];
  for (const double each : {30e-6, 70e-6}) {
    more.ran[0] = {1000, 1000 * each};
    two.table.replays.resize(1);
    two.table.replays.push_back(more);
    two.observed.resize(3);
    const auto found =
        drop_deviating_replays(two.table, SmClocks(two.recording, {}, two.table, 0), two.observed);
    // Ten and thirty are twenty on average, as in the program; ten and seventy are not.
    EXPECT_EQ(found.warnings.empty(), each < 40e-6);
  }
}

TEST(ReplayCheck, AKernelWithASlightlyDifferentTimeIsUsedAndNoted) {
  TwoSizes two;
  EXPECT_THAT(two.replayed(24e-6), IsEmpty());
  EXPECT_EQ(two.observed.size(), 3u);
  ASSERT_EQ(two.deviating.size(), 1u);
  EXPECT_EQ(two.deviating[0].kernel_class, 0u);
  EXPECT_NEAR(two.deviating[0].ratio, 0.2, 1e-9);
  two.replayed(20.5e-6);
  EXPECT_THAT(two.deviating, IsEmpty());
}

// In the program it waits for memory: its power lies between 0.8 and 1 times that of the loop.
TEST(ReplayCheck, AKernelThatTakesLongerInTheProgramDrawsLessThere) {
  TwoSizes two;
  EXPECT_THAT(two.replayed(16e-6), IsEmpty());
  ASSERT_EQ(two.loops.size(), 1u);
  EXPECT_EQ(two.loops[0].kernel_class, 0u);
  EXPECT_NEAR(two.loops[0].factor, 1 / 0.9, 1e-9);
  ASSERT_EQ(two.deviating.size(), 1u);
  EXPECT_NEAR(two.deviating[0].ratio, 0.1 / 0.9, 1e-9);
}

TEST(ReplayCheck, ALoopAtAnotherClockCountsAtThatOfTheProgram) {
  TwoSizes two;
  two.at_clock(1.8e9);
  two.clock = 1.98e9;                                 // a tenth more
  EXPECT_THAT(two.replayed(20e-6 / 1.1), IsEmpty());  // as much faster as the clock
  ASSERT_EQ(two.loops.size(), 1u);
  const PowerByClock computes = power_by_clock(1 / 1.1, 1.1);
  EXPECT_NEAR(two.loops[0].factor, computes.ratio, 1e-9);
  ASSERT_EQ(two.deviating.size(), 1u);
  EXPECT_NEAR(two.deviating[0].ratio, computes.off, 1e-9);
  two.replayed(20e-6);  // it waits for memory
  EXPECT_NEAR(two.loops[0].factor, power_by_clock(1, 1.1).ratio, 1e-9);
  EXPECT_LT(two.loops[0].factor, computes.ratio);
  two.clock = 2.5e9;
  EXPECT_THAT(two.replayed(20e-6), ElementsAre(HasSubstr("isolated re-runs not used")));
  EXPECT_THAT(two.loops, IsEmpty());
  EXPECT_EQ(two.observed.size(), 2u);
}

// Loops of two sizes ran equally long, but the program launched the short one nine times as often.
TEST(ReplayCheck, SizesCountInTheProportionsOfTheProgramWhereLoopsKnowThem) {
  TwoSizes two;
  two.replayed(15e-6);
  ActivityTable::Replay more = two.table.replays[0];
  two.table.replays[0].of_program = 9;
  more.ran[0] = {1000, 1000 * 65e-6};
  more.of_program = 1;
  two.table.replays.push_back(more);
  two.observed.resize(3);
  const auto found =
      drop_deviating_replays(two.table, SmClocks(two.recording, {}, two.table, 0), two.observed);
  EXPECT_THAT(found.warnings, IsEmpty());
  EXPECT_THAT(found.deviating, IsEmpty());  // (9 x 15 + 65) / 10 = 20 us, as in the program
}

// Once more, after another kernel.
TEST(ReplayCheck, ALoopThatIsRepeatedHasATimeAndAClockOfItsOwn) {
  TwoSizes two;
  two.at_clock(1.8e9);
  two.clock = 1.98e9;
  two.replayed(20e-6 / 1.1);
  ASSERT_EQ(two.deviating.size(), 1u);
  two.table.classes.resize(2);
  ActivityTable::Replay other = two.table.replays[0];
  other.ran = {{1, {1000, 0.01}}};
  ActivityTable::Replay again = two.table.replays[0];
  again.clock = 1.8e9 / 1.1;
  again.ran[0] = {1000, 1000 * 20e-6 * 1.1};
  two.table.replays.insert(two.table.replays.end(), {other, again});
  const auto check = [&] {
    two.observed.resize(3);
    return drop_deviating_replays(two.table, SmClocks(two.recording, {}, two.table, 0),
                                  two.observed);
  };
  // A tenth above the program's clock and a tenth below it, the kernel's exponent matters no more.
  for (const auto& deviating : check().deviating) EXPECT_EQ(deviating.kernel_class, 1u);
  // Other differences in time do not cancel: a loop 10 % slower, and one 10 % faster.
  two.table.replays[0].clock = two.table.replays[2].clock = 1.8e9;
  two.table.replays[0].ran[0] = {1000, 1000 * 22e-6};
  two.table.replays[2].ran[0] = {1000, 1000 * 18e-6};
  const auto apart = check().deviating;
  ASSERT_FALSE(apart.empty());
  EXPECT_EQ(apart[0].kernel_class, 0u);
  EXPECT_NEAR(apart[0].ratio, (0.1 + 0.05 / 0.95) / 2, 1e-3);
  two.table.replays[0].ran[0] = {1000, 1000 * 20e-6};
  two.table.replays[2].ran[0] = {1000, 1000 * 27e-6};
  EXPECT_THAT(check().warnings, ElementsAre(HasSubstr("gemm(float*) (+35 %)")));
}

TEST(ReplayCheck, SlotsSlowedByThePowerLimitAreDropped) {
  TwoSizes two;
  // As observed at 2 s and for half a second: the first slot is as in place, the tenth 4 % slower.
  two.slots.resize(50);
  two.slots[0][0] = {100, 100 * 20e-6};
  two.slots[10][0] = {100, 100 * 20.8e-6};
  EXPECT_THAT(two.replayed(20e-6), IsEmpty());
  EXPECT_EQ(two.observed.size(), 2u);
  two.slots[10][0] = {100, 100 * 20.4e-6};
  two.replayed(20e-6);
  EXPECT_EQ(two.observed.size(), 3u);
  // Slots of 20 ms from 2 s on: the fortieth lies behind what was observed until 2.5 s.
  two.slots[40][0] = {100, 100 * 23.3e-6};
  two.replayed(20e-6);
  EXPECT_EQ(two.observed.size(), 3u);
}

// The loop's clock is the mean over all of its slots.
TEST(ReplayCheck, SlotsOfALoopAtTheLimitOfItsProgramCount) {
  TwoSizes two;
  two.at_clock(1.8e9);
  two.clock = 1.8e9;
  two.slots.resize(50);
  two.slots[10][0] = {100, 100 * 22e-6};
  two.replayed(20e-6);
  EXPECT_EQ(two.observed.size(), 2u);
  two.held = 0.5;
  two.replayed(20e-6);
  EXPECT_EQ(two.observed.size(), 3u);
}

TEST(ReplayCheck, AKernelsReRunIsComparedWithItsVariant) {
  TwoSizes two;
  two.table.variants = {{0, 1}, {0, 1}};
  two.table.scope_totals[0].variant = 1;
  two.table.scope_totals[1].variant = 0;
  two.variants = {{0, 1}};
  EXPECT_THAT(two.replayed(30e-6), IsEmpty());
  two.variants = {{0, 0}};
  EXPECT_THAT(two.replayed(30e-6), ElementsAre(HasSubstr("+200 %")));
}

TEST(ReplayCheck, AReRunWithAnotherTimeIsDropped) {
  TwoSizes two;
  EXPECT_THAT(two.replayed(27e-6), ElementsAre(HasSubstr("gemm(float*) (+35 %)")));
  ASSERT_EQ(two.observed.size(), 2u);
  EXPECT_EQ(two.observed[1].begin, 3);
  EXPECT_THAT(two.replayed(13e-6), ElementsAre(HasSubstr("gemm(float*) (-35 %)")));
}

TEST(ReplayCheck, KernelsThatNeverRanInPlaceAreNotCompared) {
  TwoSizes two;
  two.table.scope_totals.clear();
  EXPECT_THAT(two.replayed(13e-6), IsEmpty());
}

using namespace std::chrono_literals;

constexpr double kPowerLimit = 4;  // the bit of the power limit, as a gauge's value

HostTime at(int second) { return HostTime{std::chrono::seconds{second}}; }

// A reading each second from 0 to 10; the power limit reduces the clocks from 4 to 8.
model::Recording recording() {
  model::Recording r;
  r.domains.push_back({});
  model::Sensor sensor;
  sensor.kind = model::SensorKind::kGauge;
  sensor.name = model::gauge::kClockEventReasons;
  r.sensors.push_back(sensor);
  for (int s = 0; s <= 10; ++s) {
    r.readings.gauges.push_back({sensor.id, at(s), s >= 4 && s < 8 ? kPowerLimit : 0});
  }
  return r;
}

ReplayTime replays(int begin, int end) {
  model::Trace trace;
  trace.chunks.emplace_back();
  trace.chunks.back().kind = model::ChunkKind::kReplay;
  trace.chunks.back().begin = at(begin);
  trace.chunks.back().end = at(end);
  ReplayTime time;
  time.add(trace);
  return time;
}

TEST(ClockLimits, IsTheShareOfTime) {
  ASSERT_TRUE(model::ClockReasons::of_gauge(kPowerLimit).limited_by_power());
  const auto r = recording();
  const ClockLimits limits(r, r.domains[0]);
  EXPECT_DOUBLE_EQ(limits.held_share(at(0), at(10), {}).value(), 0.4);
  EXPECT_DOUBLE_EQ(limits.held_share(at(4), at(8), {}).value(), 1.0);
}

// Kernels without pauses reach the power limit that the program does not.
TEST(ClockLimits, RerunsAreNotTheProgram) {
  const auto r = recording();
  const ClockLimits limits(r, r.domains[0]);
  EXPECT_DOUBLE_EQ(limits.held_share(at(0), at(10), replays(4, 8)).value(), 0.0);
  EXPECT_DOUBLE_EQ(limits.held_share(at(0), at(10), replays(6, 10)).value(), 2.0 / 6);
  EXPECT_FALSE(limits.held_share(at(0), at(10), replays(0, 11)));
}

TEST(ClockLimits, NothingIsKnownWithoutReadings) {
  model::Recording empty;
  empty.domains.push_back({});
  EXPECT_FALSE(ClockLimits(empty, empty.domains[0]).held_share(at(0), at(10), {}));
}

}  // namespace

}  // namespace jouleprof::analysis
