#include "analysis/bench/bench_energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "analysis/recorded_run_test.h"

namespace jouleprof::analysis::simulated {
namespace {

using ::testing::HasSubstr;

// A GPU at 80 W, with a context at 120 W from 3 s on, at work at 500 W from 6 s to 12 s.
class BenchEnergyTest : public ::testing::Test {
 protected:
  BenchEnergyTest() {
    run_.power.hold(80, 3);
    run_.power.hold(120, 3);
    run_.power.hold(500, 6);
    run_.power.hold(120, 5);
    run_.recording.readings.powers = run_.gpu.samples(run_.power, 0, 16);
    run_.recording.readings.counters = run_.gpu.reads(run_.power, 0.1, 16);
    run_.recording.idle_spans = {{at(0.5), at(2.9)}};
    add_window("case", 7, 11);
    bench_.window = "case";
    bench_.energy_device = "gpu0";
    bench_.iterations = 100;
  }

  void add_window(const char* name, double begin, double end) {
    run_.recording.windows.push_back({name, at(begin), at(end), 1, 1, false});
  }

  Result<BenchEnergy> energy() const { return bench_energy(analysis::Run(run_.recording), bench_); }

  Recorded run_;
  model::BenchCase bench_;
};

TEST_F(BenchEnergyTest, IsTheEnergyOfTheWindow) {
  const auto found = energy();
  ASSERT_TRUE(found);
  ASSERT_TRUE(found->device);
  const auto& gpu = found->profile.domains[*found->device];
  EXPECT_NEAR(gpu.energy->energy.joules(), 2000, 5);
  EXPECT_EQ(found->profile.duration(), Duration{4s});
  ASSERT_TRUE(gpu.mean_power);
  EXPECT_NEAR(gpu.mean_power->watts(), 500, 2);
}

TEST_F(BenchEnergyTest, AGpuThatDoesNotDoTheWorkIsLeftOut) {
  bench_.energy_device = "package-0";
  run_.read_cpu();
  const auto found = energy();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->profile.domains.size(), 1U);
  EXPECT_EQ(found->profile.domains[0].domain.device, "package-0");
  EXPECT_NEAR(found->profile.domains[0].energy->energy.joules(), 400, 2);
  for (const auto& warning : found->profile.warnings) EXPECT_THAT(warning, Not(HasSubstr("gpu0")));
}

TEST_F(BenchEnergyTest, PhasesAreTheSumsOfTheirWindows) {
  for (double t = 7; t < 11; t += 1) {
    add_window("case, prefill", t, t + 0.25);
    add_window("case, decode", t + 0.25, t + 1);
  }
  bench_.phases = {{"prefill", "case, prefill", {}}, {"decode", "case, decode", {}}};
  const auto found = energy();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->phases.size(), 2U);
  EXPECT_EQ(found->phases[0].count, 4U);
  const auto joules = [&](std::size_t i) {
    return found->phases[i].energies[*found->device].energy->energy;
  };
  EXPECT_NEAR(joules(0).joules(), 500, 5);
  // Adjacent windows: their sum is the whole, exactly.
  EXPECT_EQ(joules(0) + joules(1), found->profile.domains[*found->device].energy->energy);
  bench_.phases.push_back({"absent", "case, absent", {}});
  EXPECT_EQ(energy().error().code, Errc::kNotFound);
}

TEST_F(BenchEnergyTest, ClocksAndLimitsAreThoseOfTheWindow) {
  run_.recording.sensors.push_back({model::SensorId{9},
                                    kGpu0,
                                    model::SensorKind::kGauge,
                                    std::string(model::gauge::kSmClock),
                                    {},
                                    {}});
  auto& gauges = run_.recording.readings.gauges;
  for (const double t : {5.0, 8.0, 9.0, 12.0}) {
    gauges.push_back({model::SensorId{9}, at(t), t * 1e8});
    gauges.push_back({kReasons, at(t), t > 8.5 ? 4.0 : 0.0});  // power_limit
  }
  const auto found = energy();
  ASSERT_TRUE(found && found->sm_clock && found->limits);
  EXPECT_DOUBLE_EQ(found->sm_clock->mean, 8.5e8);
  EXPECT_DOUBLE_EQ(found->sm_clock->low, 8e8);
  EXPECT_DOUBLE_EQ(found->sm_clock->high, 9e8);
  ASSERT_EQ(found->limits->size(), 1U);
  EXPECT_EQ(found->limits->front().name, "power_limit");
  EXPECT_DOUBLE_EQ(found->limits->front().share, 0.5);
  EXPECT_FALSE(found->temperature);
}

TEST_F(BenchEnergyTest, AWindowThatIsMissingIsAnError) {
  bench_.window = "another";
  const auto found = energy();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::kNotFound);
  EXPECT_THAT(found.error().message, HasSubstr("'another'"));
}

}  // namespace
}  // namespace jouleprof::analysis::simulated

namespace jouleprof::analysis {
namespace {

using std::chrono::seconds;

HostTime at(int s) { return HostTime{seconds{s}}; }

// Rows of one second: 60 W at rest until 3 s, then the given powers.
model::Recording log_of(const std::vector<double>& watts) {
  model::Recording recording;
  recording.domains.push_back(
      {model::DomainId{0}, model::DomainKind::kGpu, "gpu0", "a GPU", "", {}, true, ""});
  recording.sensors.push_back(
      {model::SensorId{0}, model::DomainId{0}, model::SensorKind::kPowerAverage, "pwr", {}, {}});
  for (int t = 1; t <= 3; ++t) {
    recording.readings.powers.push_back({model::SensorId{0}, at(t), Power::watts(60)});
  }
  for (std::size_t i = 0; i < watts.size(); ++i) {
    recording.readings.powers.push_back(
        {model::SensorId{0}, at(4 + static_cast<int>(i)), Power::watts(watts[i])});
  }
  recording.run.work_begin = at(3);
  recording.run.work_end = at(3 + static_cast<int>(watts.size()));
  recording.idle_spans = {{at(0), at(3)}};
  return recording;
}

TEST(LatencyEnergy, MedianAndMeanOfTheRowsAtWorkAndAtRest) {
  const auto devices = power_of_work(log_of({80, 87, 88, 87}));
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].device, "gpu0");
  EXPECT_EQ(devices[0].work.readings, 4U);
  EXPECT_DOUBLE_EQ(devices[0].work.median.watts(), 87);
  EXPECT_DOUBLE_EQ(devices[0].work.mean.watts(), 85.5);
  ASSERT_TRUE(devices[0].rest);
  EXPECT_EQ(devices[0].rest->readings, 3U);
  EXPECT_DOUBLE_EQ(devices[0].rest->median.watts(), 60);
}

TEST(LatencyEnergy, TheMedianOfAnEvenNumberIsBetweenItsNeighbours) {
  EXPECT_DOUBLE_EQ(power_of_work(log_of({80, 90}))[0].work.median.watts(), 85);
}

TEST(LatencyEnergy, WithoutRowsAtRestThereIsNoRestPower) {
  auto recording = log_of({80});
  recording.idle_spans.clear();
  EXPECT_FALSE(power_of_work(recording).at(0).rest);
}

TEST(LatencyEnergy, WithoutWorkThereIsNothing) {
  auto recording = log_of({80});
  recording.run.work_begin.reset();
  EXPECT_TRUE(power_of_work(recording).empty());
}

}  // namespace
}  // namespace jouleprof::analysis
