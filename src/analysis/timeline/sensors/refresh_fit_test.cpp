#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "analysis/timeline/sensors/sensor_fit.h"
#include "analysis/timeline/simulated_sensors_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;

double ms(Duration d) { return seconds(d) * 1e3; }

TEST(CounterRefresh, IsFoundFromLateUpdates) {
  for (const double period : {0.100, 0.106, 0.020}) {
    Truth truth;
    truth.hold(90, 4);
    GpuSensors sensors;
    sensors.edge_every = period;
    sensors.read_every = 0.004;
    if (period < 0.05) sensors.latest_visible = 0.002;
    const auto refresh = fit_counter_refresh(sensors.reads(truth, 0.5, 3.5));
    ASSERT_TRUE(refresh) << refresh.error().message;
    EXPECT_NEAR(ms(refresh->value), period * 1e3, 0.4) << period;
    EXPECT_NEAR(ms(refresh->value), period * 1e3, 2 * ms(refresh->error) + 0.01) << period;
    EXPECT_LT(ms(refresh->error), 0.5);
  }
}

TEST(CounterRefresh, RefusesTooFewTooFastAndIrregular) {
  Truth truth;
  truth.hold(90, 10);
  GpuSensors sensors;
  sensors.read_every = 0.004;
  EXPECT_FALSE(fit_counter_refresh({}));
  EXPECT_FALSE(fit_counter_refresh(sensors.reads(truth, 0.5, 1.2)));
  sensors.read_every = 0.100;  // every read brings a new value
  const auto sparse = fit_counter_refresh(sensors.reads(truth, 0.5, 9));
  ASSERT_FALSE(sparse);
  EXPECT_NE(sparse.error().message.find("too fast"), std::string::npos);

  std::mt19937 random(1);
  std::uniform_real_distribution<double> gap(0.02, 0.2);
  std::vector<model::CounterReading> reads;
  double next = 0.6;
  Energy total;
  for (double t = 0.5; t < 9; t += 0.004) {
    if (t > next) {
      total += Energy::joules(5);
      next += gap(random);
    }
    reads.push_back({kCounter, at(t), at(t + 0.003), total});
  }
  const auto irregular = fit_counter_refresh(reads);
  ASSERT_FALSE(irregular);
  EXPECT_NE(irregular.error().message.find("fixed period"), std::string::npos);
}

TEST(MedianInterval, IsRobustAgainstLateUpdates) {
  // As observed on a GPU: 100 ms after the update before, which is at times late or missing.
  std::vector<double> times{0};
  for (int i = 1; i < 200; ++i) {
    const double late = i % 5 == 0 ? 0.012 : 0.0;
    times.push_back(times.back() + (i % 60 == 0 ? 0.2 : 0.1) + late);
  }
  const auto gap = median_interval(times);
  EXPECT_NEAR(ms(gap.value), 100, 0.01);
  EXPECT_NEAR(ms(median_interval({0, 0.02}).value), 20, 1e-6);
}

}  // namespace
}  // namespace jouleprof::analysis
