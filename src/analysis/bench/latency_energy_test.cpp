#include "analysis/bench/latency_energy.h"

#include <gtest/gtest.h>

#include <chrono>

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
