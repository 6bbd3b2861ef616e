#include "analysis/timeline/sensors/power_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "analysis/timeline/simulated_sensors_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;

const TimeBase kTime{kEpoch};

model::Sensor instant() {
  model::Sensor s{kRing, kGpu0, model::SensorKind::kPowerInstant, "instant", {}, {}};
  s.traits.refresh = 100ms;
  s.traits.window = 25ms;
  return s;
}

TEST(PowerShape, PlacesASampleWhereItsWindowWas) {
  PowerShape shape(GpuSensors{}.ring(), kTime);
  shape.push({kRing, at(1), Power::watts(100)});
  ASSERT_EQ(shape.samples().size(), 1u);
  EXPECT_NEAR(shape.samples()[0].begin, 1 - 0.0275, 1e-12);
  EXPECT_NEAR(shape.samples()[0].end, 1 - 0.0025, 1e-12);
}

// The value is of its turn: only the stamp is late.
TEST(PowerShape, ALateStampBetweenRegularOnesIsMended) {
  const auto ends = [](const std::vector<double>& stamps) {
    PowerShape shape(GpuSensors{}.ring(), kTime);
    for (const double t : stamps) shape.push({kRing, at(t), Power::watts(100 + t)});
    std::vector<double> out;
    for (const PowerSample& s : shape.samples()) out.push_back(s.end + 0.0025);
    return out;
  };
  using testing::DoubleNear;
  using testing::Pointwise;
  const auto regular = [](const std::vector<double>& stamps) {
    return Pointwise(DoubleNear(1e-9), stamps);
  };
  EXPECT_THAT(ends({1, 1.02, 1.04, 1.0694, 1.08, 1.1}), regular({1, 1.02, 1.04, 1.06, 1.08, 1.1}));
  EXPECT_THAT(ends({1, 1.02, 1.0415, 1.0645, 1.08}), regular({1, 1.02, 1.04, 1.06, 1.08}));
  // A sample is missing before it, or after it.
  EXPECT_THAT(ends({1, 1.02, 1.0494, 1.08}), regular({1, 1.02, 1.04, 1.08}));
  EXPECT_THAT(ends({1, 1.02, 1.06, 1.0894, 1.1}), regular({1, 1.02, 1.06, 1.08, 1.1}));
  // Neighbours that are not regular, a stamp that is early, and one that is a turn late.
  for (const auto& others : {std::vector<double>{1, 1.027, 1.044, 1.073, 1.084},
                             std::vector<double>{1, 1.02, 1.04, 1.055, 1.08},
                             std::vector<double>{1, 1.02, 1.04, 1.0695, 1.087}}) {
    EXPECT_THAT(ends(others), regular(others));
  }
}

TEST(PowerShape, AStampThatStaysLateIsDoubtful) {
  PowerShape shape(GpuSensors{}.ring(), kTime);
  for (int i = 0; i < 40; ++i) {
    // The three after the tenth are late by more and more, and the one after them is missing.
    const double late = i >= 10 && i < 13 ? 0.003 * (i - 9) : 0;
    if (i != 13)
      shape.push({kRing, at(1 + 0.02 * i + late + (i == 14 ? 0.004 : 0)), Power::watts(100 + i)});
  }
  const auto doubtful = shape.doubtful_stamps();
  ASSERT_EQ(doubtful.size(), 39u);
  EXPECT_TRUE(doubtful[11]);
  EXPECT_EQ(std::count(doubtful.begin(), doubtful.begin() + 10, true), 0);
  EXPECT_EQ(std::count(doubtful.begin() + 15, doubtful.end(), true), 0);
}

TEST(PowerShape, ARepeatedValueIsNewOnlyWhenRenewed) {
  PowerShape shape(instant(), kTime);
  for (int i = 0; i <= 1000; ++i) shape.push({kRing, at(0.001 * i), Power::watts(250)});
  EXPECT_NEAR(static_cast<double>(shape.samples().size()), 11, 1);
  EXPECT_NEAR(shape.integral(0.1, 0.9), 200, 1e-9);
}

TEST(PowerShape, PollingFasterChangesNothing) {
  const Truth truth = course([](double t) { return t < 0.5 ? 100.0 : 300.0; }, 2);
  for (const double every : {0.002, 0.010, 0.030}) {
    PowerShape shape(instant(), kTime);
    for (double t = 0; t < 2; t += every) {
      const double renewed = std::floor(t / 0.1) * 0.1;
      const double watts = truth.joules(renewed - 0.025, renewed) / 0.025;
      shape.push({kRing, at(t), Power::watts(watts)});
    }
    EXPECT_NEAR(shape.integral(0.1, 1.8), truth.joules(0.1, 1.8), 20) << every;
  }
}

TEST(PowerShape, PointSamplesIntegrateAsTrapezoids) {
  model::Sensor sensor = instant();
  sensor.traits = {};
  PowerShape shape(sensor, kTime);
  const double t[] = {0, 1, 2.5, 3};
  const double w[] = {10, 30, 20, 50};
  double trapezoid = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    shape.push({kRing, at(t[i]), Power::watts(w[i])});
    if (i > 0) trapezoid += 0.5 * (w[i] + w[i - 1]) * (t[i] - t[i - 1]);
  }
  EXPECT_NEAR(shape.integral(0, 3), trapezoid, 1e-9);
  EXPECT_NEAR(shape.integral(0, 1.2) + shape.integral(1.2, 3), trapezoid, 1e-9);
}

TEST(PowerShape, FindsMissingSamples) {
  PowerShape shape(GpuSensors{}.ring(), kTime);
  for (double t = 0.1; t < 1; t += 0.02) shape.push({kRing, at(t), Power::watts(100)});
  for (double t = 3; t < 4; t += 0.02) shape.push({kRing, at(t), Power::watts(100)});
  EXPECT_NEAR(shape.missing_seconds(0, 4), 2, 0.05);
  EXPECT_EQ(shape.missing_seconds(3.2, 4), 0);
  EXPECT_GT(shape.missed_variance(0.5, 3.5), 2000);
  EXPECT_LT(shape.missed_variance(3.2, 3.9), 10);
}

// Long intervals are answered from sums and blocks: as each sample of them says.
TEST(PowerShape, VariationAndMissingTimeAreThoseOfTheSamples) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(0, 1);
  PowerShape shape(GpuSensors{}.ring(), kTime);
  for (double t = 1; t < 90; t += uniform(random) < 0.01 ? 0.3 : 0.02) {
    // Contradicted by the next one: it is taken back.
    if (uniform(random) < 0.4) shape.push({kRing, at(t), Power::watts(700)});
    shape.push({kRing, at(t), Power::watts(200 + t + std::floor(3 * uniform(random)))});
    if (t > 20 && t < 20.02) shape.forget_before(6.21);
  }
  ASSERT_GT(shape.samples().size(), 2000U);
  for (int k = 0; k < 300; ++k) {
    const double from = 95 * uniform(random);
    const double to = from + (k < 100 ? 0.1 : 60) * uniform(random);
    std::vector<double> watts;
    double steps = 0;
    double missing = 0;
    const PowerSample* last = nullptr;
    for (const PowerSample& s : shape.samples()) {
      if (s.after_missing && last != nullptr)
        missing += std::max(std::min(to, s.begin) - std::max(from, last->end), 0.0);
      last = &s;
      if (s.begin < from || s.end > to) continue;
      if (!watts.empty()) steps += std::abs(s.watts - watts.back());
      watts.push_back(s.watts);
    }
    EXPECT_NEAR(shape.missing_seconds(from, to), missing, 1e-9) << from << " " << to;
    const auto found = shape.variation(from, to);
    if (watts.size() < 2) {
      EXPECT_EQ(found.range, 0);
      continue;
    }
    const auto [low, high] = std::ranges::minmax(watts);
    EXPECT_EQ(found.range, high - low) << from << " " << to;
    EXPECT_NEAR(found.step, steps / static_cast<double>(watts.size() - 1), 1e-9);
  }
}

TEST(PowerShape, HandsItsTroublesOverAndKeepsTheNewest) {
  PowerShape shape(GpuSensors{}.ring(), kTime);
  EXPECT_EQ(shape.last_trouble(), nullptr);
  std::size_t taken = 0;
  for (int hour = 0; hour < 36; ++hour) {
    for (int second = 0; second < 3600; ++second) {
      shape.push({kRing, at(3600 * hour + second), Power::watts(1e6)});
    }
    const auto troubles = shape.take_troubles();
    EXPECT_NEAR(static_cast<double>(troubles.size()), 360, 1);  // one in ten seconds
    taken += troubles.size();
    EXPECT_TRUE(shape.take_troubles().empty());
  }
  EXPECT_NEAR(static_cast<double>(taken), 36 * 360, 36);
  EXPECT_EQ(shape.left_out(), 36 * 3600u);
  EXPECT_STREQ(shape.last_trouble(),
               "the power sensor showed more than the board can draw; left out");
}

TEST(PowerShape, IgnoresImpossibleReadings) {
  PowerShape shape(GpuSensors{}.ring(), kTime);
  shape.push({kRing, at(1), Power::watts(100)});
  shape.push({kRing, at(0.5), Power::watts(100)});
  shape.push({kRing, at(2), Power::watts(-5)});
  shape.push({kRing, at(3), Power::watts(4294967.295)});
  EXPECT_EQ(shape.samples().size(), 1u);
}

}  // namespace
}  // namespace jouleprof::analysis
