#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "meters/nvml/nvml_fixture.h"
#include "meters/nvml/probes/probes.h"

namespace jouleprof::meters::nvml {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

class CounterProbeTest : public testing::Test {
 protected:
  CounterProbeTest() : gpu_(fake_.gpus.emplace_back()) { count_at(100ms); }

  // 300 W, in steps of one `period`; an update is at phase 37 ms.
  void count_at(Duration period) {
    gpu_.energy_mj = [period](HostTime t) {
      const auto steps = (t.time_since_epoch() - 37ms) / period;
      return static_cast<unsigned long long>(steps * (period / 1ms) * 300);
    };
  }
  void start(bool every_update = false, Duration first_burst = {}, Duration rarely = 5s) {
    begin_ = fake_.clock.host;
    probe_.emplace(api_, gpu_.device(), model::SensorId{3},
                   CounterPlan{100ms, every_update, begin_ + first_burst, rarely}, clock_);
  }
  // As a sampler does: reads when due, for `d`.
  void run(Duration d) {
    const HostTime end = fake_.clock.host + d;
    while (due_.value_or(fake_.clock.host) < end) {
      if (due_ && *due_ > fake_.clock.host) fake_.pass(*due_ - fake_.clock.host);
      due_ = probe_->read(out_);
    }
    fake_.pass(end - std::min(end, fake_.clock.host));
  }
  // As a sampler does at an edge: reads now, and until it does not wait any more.
  void read_now() {
    due_ = probe_->read(out_);
    while (probe_->is_waiting()) {
      fake_.pass(*due_ - std::min(*due_, fake_.clock.host));
      due_ = probe_->read(out_);
    }
  }
  // Time from the update before to a reading, in milliseconds.
  static double since_update(const model::CounterReading& r) {
    const Duration t = (r.before.time_since_epoch() + (r.after - r.before) / 2 - 37ms) % 100ms;
    return seconds(t) * 1e3;
  }

  FakeNvml fake_;
  NvmlApi api_ = fake_.api();
  NvmlClock clock_ = fake_.seam();
  FakeGpu& gpu_;
  HostTime begin_{};
  std::optional<CounterProbe> probe_;
  std::optional<HostTime> due_;
  model::Readings out_;
};

TEST_F(CounterProbeTest, BeginsDenselyThenReadsBetweenUpdates) {
  for (int phase = 0; phase < 5; ++phase) {
    fake_.pass(20ms);  // wherever it begins
    due_.reset();
    out_.clear();
    start();
    run(1s);
    EXPECT_EQ(out_.counters.size(), 40u);
    out_.clear();
    run(49s);
    EXPECT_GE(out_.counters.size(), 9u);
    EXPECT_LE(out_.counters.size(), 11u);
    for (const auto& r : out_.counters) EXPECT_NEAR(since_update(r), 50, 15);
    EXPECT_TRUE(out_.failures.empty());
  }
}

TEST_F(CounterProbeTest, FollowsThePhaseOnceAMinute) {
  start();
  run(600s);
  // 40 at first, some 115 one by one, 6 in each of 9 bursts: 0.1 % of a core at 2.6 ms.
  EXPECT_LT(out_.counters.size(), 230u);
  int bursts = 0;
  for (std::size_t i = 45; i + 5 < out_.counters.size(); ++i) {
    if (out_.counters[i + 5].before - out_.counters[i].before > 60ms) continue;
    ++bursts;
    EXPECT_GT(out_.counters[i + 5].total, out_.counters[i].total);  // it brackets an update
  }
  EXPECT_GE(bursts, 8);
}

TEST_F(CounterProbeTest, WithSamplesOneReadInTenSecondsIsEnough) {
  start(false, {}, 10s);
  run(600s);
  // 40 at first, some 57 one by one, 6 in each of 4 bursts: 0.04 % of a core at 2.6 ms.
  EXPECT_LT(out_.counters.size(), 125u);
  EXPECT_GT(out_.counters.size(), 110u);
}

TEST_F(CounterProbeTest, TicksThatComeBeforeTheNextReadIsDueAreOneReadEach) {
  start(false, {}, 15s);
  run(9s);
  for (int tick = 0; tick < 16; ++tick) {
    out_.clear();
    fake_.pass(1ms * tick);  // wherever between two updates
    read_now();
    EXPECT_EQ(out_.counters.size(), 1u);
    EXPECT_NEAR(since_update(out_.counters[0]), 50, 30);
    if (*due_ < fake_.clock.host + 1s) {  // it follows the phase
      out_.clear();
      run(1s);
      EXPECT_LE(out_.counters.size(), 6u);
    }
    out_.clear();
    run(10s);
    EXPECT_TRUE(out_.counters.empty());
  }
}

TEST_F(CounterProbeTest, ShortWindowsReadOnceAfterEachUpdate) {
  start(true);
  run(1s);
  out_.clear();
  run(10s);
  EXPECT_NEAR(static_cast<double>(out_.counters.size()), 100, 2);
  for (std::size_t i = 1; i < out_.counters.size(); ++i) {
    EXPECT_NEAR(since_update(out_.counters[i]), 20, 18);
    EXPECT_EQ(out_.counters[i].total - out_.counters[i - 1].total, Energy::joules(30));
  }
}

TEST_F(CounterProbeTest, WaitsItsTurn) {
  start(false, 2s);
  due_ = probe_->read(out_);
  EXPECT_EQ(*due_, begin_ + 2s);
  run(3s);
  EXPECT_EQ(out_.counters.size(), 41u);
}

TEST_F(CounterProbeTest, LastReadWaitsForAnUpdateThatIsNear) {
  start();
  run(9s);
  // To 5 ms before an update.
  const Duration phase = (fake_.clock.host.time_since_epoch() - 37ms) % 100ms;
  fake_.pass((195ms - phase) % 100ms);
  const Energy before = out_.counters.back().total;
  out_.clear();
  read_now();
  ASSERT_EQ(out_.counters.size(), 1u);  // a read takes milliseconds of CPU time
  EXPECT_GT(out_.counters[0].total, before);
  EXPECT_NEAR(since_update(out_.counters[0]), 50, 15);
}

TEST_F(CounterProbeTest, LastReadFarFromAnUpdateIsOneRead) {
  start();
  run(9s);
  const Duration phase = (fake_.clock.host.time_since_epoch() - 37ms) % 100ms;
  fake_.pass((150ms - phase) % 100ms);
  out_.clear();
  read_now();
  EXPECT_EQ(out_.counters.size(), 1u);
}

TEST_F(CounterProbeTest, LastReadOfAShortRunSeesAnUpdate) {
  start();
  probe_->read(out_);
  read_now();  // at once: long before it is due
  EXPECT_LE(out_.counters.size(), 7u);
  EXPECT_GT(out_.counters.back().total, out_.counters.front().total);
}

TEST_F(CounterProbeTest, AnEarlyReadDoesNotSleep) {
  start();
  for (int i = 0; i < 60; ++i) {  // before the phase is known, and after
    const HostTime before = fake_.clock.host;
    due_ = probe_->read(out_);
    EXPECT_LT(fake_.clock.host - before, 10ms);
    EXPECT_LT(*due_ - fake_.clock.host, probe_->is_waiting() ? 90ms : 6s);
    fake_.pass(7ms);
  }
}

TEST_F(CounterProbeTest, AFrozenCounterIsNotWaitedForLong) {
  start();
  probe_->read(out_);
  gpu_.energy_mj = [](HostTime) { return 777ULL; };
  probe_->read(out_);
  const HostTime before = fake_.clock.host;
  read_now();
  EXPECT_LT(fake_.clock.host - before, 160ms);
  EXPECT_FALSE(probe_->is_waiting());
}

TEST_F(CounterProbeTest, FastCounterHasNoPhaseToAimAt) {
  count_at(20ms);
  start();
  run(1s);
  out_.clear();
  run(21s);
  EXPECT_GE(out_.counters.size(), 4u);
  EXPECT_LE(out_.counters.size(), 5u);
}

TEST_F(CounterProbeTest, CounterThatGoesBackIsLearntAnew) {
  start();
  run(10s);
  out_.clear();
  const HostTime reset = fake_.clock.host;
  gpu_.energy_mj = [reset](HostTime t) {
    return static_cast<unsigned long long>((t - reset) / 100ms * 30'000);
  };
  run(10s);
  EXPECT_GE(out_.counters.size(), 40u);  // given as it is, and read densely again
  EXPECT_LT(out_.counters[0].total, Energy::joules(1000));
}

TEST_F(CounterProbeTest, GpuThatComesBackIsLearntAnew) {
  start();
  run(10s);
  gpu_.all = abi::Return::kGpuIsLost;
  out_.clear();
  gpu_.energy_reads = 0;
  run(35s);
  EXPECT_EQ(out_.failures.size(), 1u);
  EXPECT_LE(gpu_.energy_reads, 5);
  gpu_.all = abi::Return::kSuccess;
  run(15s);
  EXPECT_GE(out_.counters.size(), 40u);
}

TEST_F(CounterProbeTest, FrozenCounterIsReported) {
  start();
  run(2s);
  gpu_.energy_mj = [](HostTime) { return 777ULL; };
  run(20s);
  ASSERT_EQ(out_.failures.size(), 1u);
  EXPECT_THAT(out_.failures[0].error.message, HasSubstr("stopped counting"));
}

TEST_F(CounterProbeTest, SentinelIsAFailureReportedOnce) {
  start();
  run(2s);
  gpu_.energy_mj = [](HostTime) { return ~0ULL; };
  out_.clear();
  run(20s);
  EXPECT_TRUE(out_.counters.empty());
  EXPECT_EQ(out_.failures.size(), 1u);
}

constexpr HostTime kStart{1h};

TEST(EdgeTracker, PredictsNothingBeforeTheFirstUpdate) {
  EdgeTracker edges(100ms);
  EXPECT_FALSE(edges.next_after(kStart));
  edges.saw(kStart, kStart + 61ms);  // could hold most of the phases
  EXPECT_FALSE(edges.next_after(kStart));
  edges.saw(kStart, kStart + 60ms);
  EXPECT_TRUE(edges.next_after(kStart));
}

TEST(EdgeTracker, BracketsNarrowAndRepeat) {
  EdgeTracker edges(100ms);
  edges.saw(kStart + 20ms, kStart + 50ms);
  edges.saw(kStart + 340ms, kStart + 370ms);  // together: 40 to 50
  EXPECT_EQ(edges.next_after(kStart), kStart + 45ms);
  EXPECT_EQ(edges.next_after(kStart + 45ms), kStart + 145ms);
  EXPECT_EQ(edges.next_after(kStart + 5045ms - 1ns), kStart + 5045ms);
  EXPECT_EQ(edges.next_after(kStart - 1s), kStart - 955ms);
}

TEST(EdgeTracker, AMovedPhaseReplacesTheOldOne) {
  EdgeTracker edges(100ms);
  edges.saw(kStart + 20ms, kStart + 40ms);
  edges.saw(kStart + 180ms, kStart + 200ms);
  EXPECT_EQ(edges.next_after(kStart + 200ms), kStart + 290ms);
  edges.forget();
  EXPECT_FALSE(edges.next_after(kStart));
}

TEST(EdgeTracker, UpdatesAtAnotherPeriodGiveNoPhase) {
  EdgeTracker edges(100ms);
  for (int i = 0; i < 10; ++i) edges.saw(kStart + i * 50ms, kStart + i * 50ms + 10ms);
  EXPECT_FALSE(edges.next_after(kStart));
}

// Reads of several devices delay each other: then a bracket is wide, and updates in it are missed.
TEST(EdgeTracker, MissedUpdatesAreNoOtherPeriod) {
  EdgeTracker edges(100ms);
  for (const int i : {0, 1, 4, 8, 9, 14}) {
    const HostTime update = kStart + i * 100ms;
    edges.saw(update - 370ms, update - 20ms);
    edges.saw(update - 20ms, update + 10ms);
  }
  EXPECT_EQ(edges.next_after(kStart), kStart + 95ms);

  EdgeTracker row(100ms);  // after a row the check is done
  for (const int i : {0, 1, 2, 3}) row.saw(kStart + i * 100ms, kStart + i * 100ms + 10ms);
  row.saw(kStart + 310ms, kStart + 1200ms);
  row.saw(kStart + 1200ms, kStart + 1210ms);
  EXPECT_EQ(row.next_after(kStart), kStart + 5ms);
}

}  // namespace
}  // namespace jouleprof::meters::nvml
