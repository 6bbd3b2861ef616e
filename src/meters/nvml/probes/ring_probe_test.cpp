#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "meters/nvml/nvml_fixture.h"
#include "meters/nvml/probes/probes.h"

namespace jouleprof::meters::nvml {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr auto kType = abi::SamplingType::kTotalPower;

class RingProbeTest : public testing::Test {
 protected:
  RingProbeTest() : gpu_(fake_.gpus.emplace_back()) {
    run(3s);
    truth_.clear();
    RingContent known;
    EXPECT_EQ(read_ring(api_, gpu_.device(), kType, known), abi::Return::kSuccess);
    EXPECT_EQ(known.refresh(), 20ms);
    EXPECT_EQ(known.capacity, 120u);
    probe_.emplace(api_, gpu_.device(), kType, model::SensorId{7}, known, 20ms, 1s, clock_);
  }
  // Lets time pass with a sample each 20 ms.
  void run(Duration d) {
    for (Duration t{}; t < d; t += 20ms) {
      fake_.pass(20ms);
      gpu_.push_sample(fake_.clock.real, ++mw_);
      truth_.push_back(fake_.clock.host);
    }
  }
  void read() { next_ = probe_->read(out_); }
  std::vector<HostTime> times() const {
    std::vector<HostTime> t;
    for (const auto& r : out_.powers) t.push_back(r.at);
    return t;
  }
  void expect_exactly_the_truth() {
    ASSERT_EQ(times().size(), truth_.size());
    for (std::size_t i = 0; i < truth_.size(); ++i) {
      EXPECT_LT(std::chrono::abs(times()[i] - truth_[i]), 1us) << i;
    }
  }

  FakeNvml fake_;
  NvmlApi api_ = fake_.api();
  NvmlClock clock_ = fake_.seam();
  FakeGpu& gpu_;
  unsigned mw_ = 100'000;
  std::vector<HostTime> truth_;
  std::optional<RingProbe> probe_;
  model::Readings out_;
  HostTime next_{};
};

TEST_F(RingProbeTest, GivesEachSampleOnceAndNoneFromBefore) {
  read();
  EXPECT_TRUE(out_.empty());
  for (int i = 0; i < 10; ++i) {
    run(i % 2 == 0 ? 1s : 300ms);
    read();
    read();  // nothing new
  }
  EXPECT_EQ(next_, fake_.clock.host + 1s);
  EXPECT_TRUE(out_.failures.empty());
  expect_exactly_the_truth();
  EXPECT_EQ(out_.powers[0].sensor, model::SensorId{7});
  EXPECT_NEAR(out_.powers[1].power.watts() - out_.powers[0].power.watts(), 0.001, 1e-9);
}

TEST_F(RingProbeTest, WallClockStepsNeitherDuplicateNorLose) {
  read();
  for (const Duration step : {Duration(3600s), Duration(-3600s), Duration(10s), Duration(-7s)}) {
    run(500ms);
    fake_.set_wall_clock(step);
    run(500ms);
    read();
    run(1s);
    read();
  }
  EXPECT_TRUE(out_.failures.empty());
  expect_exactly_the_truth();
}

TEST_F(RingProbeTest, SamplesThatASmallStepLeavesUnsureAreLeftOutAndReported) {
  read();
  run(500ms);
  fake_.set_wall_clock(-200ms);
  run(500ms);
  read();
  EXPECT_LT(out_.powers.size(), 50u);
  ASSERT_EQ(out_.failures.size(), 1u);
  EXPECT_THAT(out_.failures[0].error.message,
              HasSubstr(std::to_string(50 - out_.powers.size()) + " samples left out"));
  for (const auto t : times()) {
    EXPECT_TRUE(std::any_of(truth_.begin(), truth_.end(),
                            [&](HostTime x) { return std::chrono::abs(x - t) < 1us; }));
  }
  out_.clear();
  truth_.clear();
  run(1s);
  read();
  EXPECT_TRUE(out_.failures.empty());
  expect_exactly_the_truth();
}

TEST_F(RingProbeTest, SampleThatWasOnItsWayAtTheStartIsGiven) {
  fake_.pass(15ms);
  RingContent known;
  read_ring(api_, gpu_.device(), kType, known);
  probe_.emplace(api_, gpu_.device(), kType, model::SensorId{7}, known, 20ms, 1s, clock_);
  gpu_.push_sample(fake_.clock.real - 3ms, 123'000);
  fake_.pass(2ms);
  read();
  EXPECT_EQ(out_.powers.size(), 1u);
  EXPECT_TRUE(out_.failures.empty());
}

TEST_F(RingProbeTest, ALateReadReportsOverwrittenSamples) {
  read();
  run(1s);
  read();
  out_.clear();
  run(5s);
  read();
  EXPECT_EQ(out_.powers.size(), 120u);
  ASSERT_EQ(out_.failures.size(), 1u);
  EXPECT_THAT(out_.failures[0].error.message, HasSubstr("samples of 2.6 s are lost"));
}

TEST_F(RingProbeTest, FrozenRingIsReportedOnce) {
  read();
  for (int i = 0; i < 4; ++i) {
    fake_.pass(1s);
    read();
  }
  ASSERT_EQ(out_.failures.size(), 1u);
  EXPECT_THAT(out_.failures[0].error.message, HasSubstr("no new samples"));
  run(1s);
  read();
  EXPECT_EQ(out_.powers.size(), 50u);
}

TEST_F(RingProbeTest, SentinelSamplesAreFailures) {
  read();
  mw_ = 0xFFFFFFFE;
  run(20ms);
  mw_ = 100'000;
  run(100ms);
  read();
  EXPECT_EQ(out_.powers.size(), 5u);
  ASSERT_EQ(out_.failures.size(), 1u);
}

TEST_F(RingProbeTest, EmptyAndUnsupportedRings) {
  RingContent ring;
  gpu_.rings[kType].clear();
  EXPECT_EQ(read_ring(api_, gpu_.device(), kType, ring), abi::Return::kNoData);
  RingContent other;
  EXPECT_EQ(read_ring(api_, gpu_.device(), abi::SamplingType::kModulePower, other),
            abi::Return::kNotSupported);
}

}  // namespace
}  // namespace jouleprof::meters::nvml
