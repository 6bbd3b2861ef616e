#include "analysis/timeline/sensors/counter_edges.h"

#include <gtest/gtest.h>

#include "analysis/timeline/simulated_sensors_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;

const TimeBase kTime{kEpoch};

std::vector<CounterPoint> unwrap(const std::vector<model::CounterReading>& readings) {
  CounterUnwrapper unwrapper(GpuSensors{}.counter().traits);
  std::vector<CounterPoint> points;
  for (const auto& r : readings) unwrapper.push(r, points);
  return points;
}

PowerShape shape_of(const GpuSensors& gpu, const Truth& truth) {
  PowerShape shape(gpu.ring(), kTime);
  for (const auto& r : gpu.samples(truth, 0, truth.end())) shape.push(r);
  return shape;
}

Truth square(double length) {
  return course([](double t) { return std::fmod(t, 0.73) < 0.31 ? 600.0 : 120.0; }, length);
}

double distance_to_lattice(double t, const GpuSensors& gpu) {
  return std::remainder(t - gpu.phase, gpu.edge_every);
}

TEST(CounterEdges, FindsThePhaseFromSightingsAlone) {
  GpuSensors gpu;
  gpu.read_every = 0.025;
  const Truth truth = square(10);
  const auto placed =
      place_counter(unwrap(gpu.reads(truth, 0.1, 10)), gpu.counter().traits, nullptr, {}, kTime);
  ASSERT_TRUE(placed.phase);
  // Delays of up to 28 ms are thought possible, and 16 occur.
  EXPECT_NEAR(distance_to_lattice(placed.phase->edge, gpu), -0.006, 0.009);
  EXPECT_GE(placed.phase->sigma, 0.004);
  EXPECT_GE(placed.anchors.size(), 95u);
}

// As of a load that runs at the rate of the samples, which always show the same part of it.
TEST(CounterEdges, ACounterThatDisagreesWithTheSamplesIsNotDropped) {
  GpuSensors gpu;
  gpu.read_every = 0.025;
  const Truth sampled = course([](double t) { return t < 2 || t > 7 ? 70.0 : 220.0; }, 10);
  const Truth truth = course([](double t) { return t < 2 || t > 7 ? 70.0 : 300.0; }, 10);
  const PowerShape shape = shape_of(gpu, sampled);
  const auto begin = gpu.reads(truth, 0.1, 1);
  for (double t = 8; t < 8.1; t += 0.004) {
    auto readings = begin;
    for (const auto& r : gpu.reads(truth, t, t + 0.001)) readings.push_back(r);
    ASSERT_EQ(readings.size(), begin.size() + 1);
    const auto placed = place_counter(unwrap(readings), gpu.counter().traits, &shape, {}, kTime);
    ASSERT_GE(placed.anchors.size(), 5u);
    const auto& first = placed.anchors.front();
    const auto& last = placed.anchors.back();
    ASSERT_NEAR(last.at, t, 0.2) << t;
    const double counted = truth.joules(first.at, last.at);
    EXPECT_NEAR(last.joules - first.joules, counted, 70 * (2 * last.sigma + 0.13))
        << t;  // to an update
    EXPECT_LT(last.sigma, 0.06);
  }
}

TEST(CounterEdges, AnOutlyingReadIsNotMovedToAWrongUpdate) {
  // Constant power: what was counted from the first read to the last is one update more than what
  // was sampled, because the first edge had passed long before it was read.
  const Truth truth = course([](double) { return 250.0; }, 8);
  const PowerShape shape = shape_of(GpuSensors{}, truth);
  const double ends[] = {
      0.0260, 0.1300, 0.2121, 0.3162, 0.4203, 0.5242,
      0.6282, 0.7061, 0.8101, 0.9402, 1.0065};  // when each of the first updates was seen
  std::vector<model::CounterReading> readings;
  const auto read = [&](double t, double joules) {
    readings.push_back({kCounter, at(t), at(t + 50e-6), Energy::joules(joules)});
  };
  read(0, 0);
  for (double t = 0.026, seen = 0; t < 1.03; t += 0.0260333) {
    while (seen < 11 && t > ends[static_cast<int>(seen)] - 0.002) ++seen;
    read(t, 25 * seen);
  }
  read(5.0161, 1275);
  read(5.0204, 1275);
  read(6.0168, 1525);
  read(6.0204, 1525);
  const auto placed =
      place_counter(unwrap(readings), GpuSensors{}.counter().traits, &shape, {}, kTime);
  ASSERT_GE(placed.anchors.size(), 10u);
  const auto& first = placed.anchors.front();
  const auto& last = placed.anchors.back();
  EXPECT_NEAR((last.joules - first.joules) / (last.at - first.at), 250, 0.5);
}

TEST(CounterEdges, SamplesSharpenThePhase) {
  for (const double phase : {0.01, 0.035, 0.06, 0.099}) {
    GpuSensors gpu;
    gpu.phase = phase;
    gpu.read_every = 0.1;
    const Truth truth = square(20);
    const PowerShape shape = shape_of(gpu, truth);
    const auto placed =
        place_counter(unwrap(gpu.reads(truth, 0.1, 20)), gpu.counter().traits, &shape, {}, kTime);
    ASSERT_TRUE(placed.phase);
    EXPECT_NEAR(distance_to_lattice(placed.phase->edge, gpu), 0, 0.002) << phase;
    ASSERT_GE(placed.anchors.size(), 150u);
    const double offset = truth.joules(placed.anchors[0].at) - placed.anchors[0].joules;
    for (const Anchor& a : placed.anchors) {
      EXPECT_NEAR(a.joules + offset, truth.joules(a.at), 2.5);
    }
  }
}

TEST(CounterEdges, AnUpdateOfMoreThanTheMeanIsNoDifferenceInScale) {
  // Of the 64th board, whose turn of dense reads has not come: one read, and those of the end. The
  // update near the first read is 33 J, the mean one 19 J.
  const Truth truth = course([](double t) { return std::fmod(t, 0.7) < 0.21 ? 330.0 : 130.0; }, 8);
  GpuSensors gpu;
  gpu.phase = 0.022;
  gpu.window = 0.003;
  gpu.seed = 23;
  const PowerShape shape = shape_of(gpu, truth);
  const auto readings = gpu.reads(truth, {0.839, 4.9807, 5.0055, 5.0316});
  const auto placed = place_counter(unwrap(readings), gpu.counter().traits, &shape, {}, kTime);
  ASSERT_FALSE(placed.anchors.empty());
  const Anchor& first = placed.anchors.front();
  const Anchor& last = placed.anchors.back();
  EXPECT_NEAR(last.joules - first.joules, truth.joules(first.at, last.at), 12);
}

TEST(CounterEdges, AJumpALostUpdateAndALateReadMoveNothing) {
  GpuSensors gpu;
  const Truth truth = square(20);
  const PowerShape shape = shape_of(gpu, truth);
  auto readings = gpu.reads(truth, 0.1, 20);
  readings[50].after += 60ms;               // late
  readings[80].total = readings[79].total;  // an update not seen
  for (std::size_t i = 120; i < 125; ++i) readings[i].total = readings[119].total;
  readings[150].total += Energy::joules(20);  // a jump
  const auto placed = place_counter(unwrap(readings), gpu.counter().traits, &shape, {}, kTime);
  ASSERT_TRUE(placed.phase);
  EXPECT_NEAR(distance_to_lattice(placed.phase->edge, gpu), 0, 0.002);
}

TEST(CounterEdges, FollowsADriftingClock) {
  GpuSensors gpu;
  gpu.drift = 20e-6;
  gpu.read_every = 0.2;
  const Truth truth = square(600);
  const PowerShape shape = shape_of(gpu, truth);
  const auto points = unwrap(gpu.reads(truth, 0.1, 600));
  std::optional<EdgePhase> phase;
  for (std::size_t from = 0; from + 300 <= points.size(); from += 300) {
    const auto placed = place_counter(std::span(points).subspan(from, 300), gpu.counter().traits,
                                      &shape, phase, kTime);
    ASSERT_TRUE(placed.phase);
    phase = placed.phase;
    const double k = std::round((phase->edge - gpu.phase) / (0.1 * (1 + gpu.drift)));
    EXPECT_NEAR(phase->edge, gpu.phase + k * 0.1 * (1 + gpu.drift), 0.002) << from;
  }
  EXPECT_GT(phase->edge, 500);
}

TEST(CounterEdges, CorrectsAPeriodThatIsAPercentOff) {
  GpuSensors gpu;
  gpu.edge_every = 0.101;
  gpu.read_every = 0.02;
  const Truth truth = square(20);
  auto traits = gpu.counter().traits;
  traits.refresh = 100ms;
  const auto placed = place_counter(unwrap(gpu.reads(truth, 0.1, 20)), traits, nullptr, {}, kTime);
  ASSERT_TRUE(placed.phase);
  EXPECT_NEAR(placed.phase->period, 0.101, 1e-4);
}

TEST(CounterEdges, FineCountersAreAnchoredAtTheRead) {
  model::SensorTraits traits;
  traits.refresh = 1ms;
  std::vector<CounterPoint> points;
  for (int i = 0; i < 10; ++i) {
    points.push_back({at(0.1 * i), at(0.1 * i + 0.002), Energy::joules(5.0 * i), 0});
  }
  const auto placed = place_counter(points, traits, nullptr, {}, kTime);
  ASSERT_EQ(placed.anchors.size(), 10u);
  EXPECT_FALSE(placed.phase);
  EXPECT_NEAR(placed.anchors[3].at, 0.3 + 0.001 - 0.0005, 1e-9);
  EXPECT_NEAR(placed.anchors[3].sigma, std::hypot(0.001, 0.002) / std::sqrt(12.0), 1e-9);
}

}  // namespace
}  // namespace jouleprof::analysis
