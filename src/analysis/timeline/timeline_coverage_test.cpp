// Bias and error of the timeline's windows, and the coverage of their intervals.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/timeline/simulated_timeline_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;

// Errors of measured windows relative to the truth.
struct Score {
  int n = 0;
  int covered = 0;
  double sum = 0;
  double squares = 0;

  void add(const model::Measurement& m, double truth) {
    const double error = m.energy.joules() - truth;
    ++n;
    covered += std::abs(error) <= m.repeatability.joules();
    sum += error / truth;
    squares += error * error / truth / truth;
  }
  double bias() const { return sum / n; }
  double rms() const { return std::sqrt(squares / n); }
  double coverage() const { return static_cast<double>(covered) / n; }
};

// Bursts of `length` at 600 W after pauses of 20 to 120 ms at 120 W, each a window.
Score bursts(double length, bool marked, double rise = 0) {
  Score score;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> pause(0.020, 0.120);
    Truth truth;
    truth.hold(120, 1);
    std::vector<std::pair<double, double>> windows;
    for (int i = 0; i < 40; ++i) {
      windows.emplace_back(truth.end(), truth.end() + length);
      truth.hold(600, length);
      truth.hold(120, pause(random));
    }
    truth.hold(120, 1);
    GpuSensors gpu;
    gpu.seed = seed;
    gpu.phase = 0.01 + 0.02 * seed;
    if (rise > 0) {
      gpu.rise = rise;
      gpu.window = 0.003;
      gpu.lag = 0.0027;
      gpu.earliest_visible = 0;
      gpu.latest_visible = 0.012;
    }
    EnergyTimeline timeline = fused(gpu, truth);
    if (marked) {
      for (const auto& [a, b] : windows) timeline.mark(at(a)), timeline.mark(at(b));
    }
    for (const auto& [a, b] : windows) {
      const auto m = timeline.energy(at(a), at(b));
      EXPECT_TRUE(m);
      if (m) score.add(*m, truth.joules(a, b));
    }
  }
  return score;
}

TEST(Timeline, WindowsOfWorkAreRight) {
  EXPECT_LT(bursts(0.050, false).rms(), 0.05);
  EXPECT_LT(bursts(0.100, false).rms(), 0.03);
  EXPECT_LT(bursts(0.500, false).rms(), 0.01);
  EXPECT_LT(std::abs(bursts(0.500, false).bias()), 0.01);
}

TEST(Timeline, MarksTakeTheBiasAway) {
  for (const double length : {0.050, 0.100, 0.500}) {
    const Score score = bursts(length, true);
    EXPECT_LT(std::abs(score.bias()), 0.005) << length;
    EXPECT_LT(score.rms(), 0.02) << length;
    EXPECT_GE(score.coverage(), 0.9) << length;
  }
}

// With the time constant of Hopper's sensors.
TEST(Timeline, CorrectsTheSensorsTimeConstant) {
  for (const double length : {0.010, 0.050, 0.100, 0.500}) {
    for (const bool marked : {false, true}) {
      const Score score = bursts(length, marked, 0.014);
      if (length >= 0.050) {
        EXPECT_LT(std::abs(score.bias()), marked ? 0.01 : 0.08) << length;
      }
      EXPECT_GE(score.coverage(), 0.9) << length << " " << marked;
    }
  }
}

TEST(Timeline, IntervalsHoldTheTruthForShortBursts) {
  for (const double length : {0.010, 0.050, 0.100, 0.500}) {
    EXPECT_GE(bursts(length, false).coverage(), 0.9) << length;
  }
}

class RandomWindows : public testing::TestWithParam<double> {};

TEST_P(RandomWindows, AreCovered) {
  for (const double length : {0.05, 0.1, 1.0, 10.0}) {
    Score score;
    for (unsigned seed = 1; seed <= 2; ++seed) {
      const Truth truth = mixed(seed, 30);
      GpuSensors gpu;
      gpu.seed = seed;
      gpu.phase = 0.03 * seed;
      gpu.read_every = GetParam();
      gpu.gain = 1.01;
      EnergyTimeline timeline = fused(gpu, truth);
      std::mt19937 random(seed + 7);
      std::uniform_real_distribution<double> start(1.0, truth.end() - length - 0.5);
      for (int i = 0; i < 200; ++i) {
        const double a = start(random);
        const auto m = timeline.energy(at(a), at(a + length));
        ASSERT_TRUE(m) << m.error().message;
        score.add(*m, truth.joules(a, a + length));
      }
    }
    EXPECT_GE(score.coverage(), 0.9) << length;
    EXPECT_LT(std::abs(score.bias()), 0.01) << length;
    if (length >= 1) {
      EXPECT_LT(score.rms(), 0.02) << length;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ReadEvery, RandomWindows,
                         testing::Values(0.02, 0.1, 0.107, 1.0, 5.0, 10.0));

// As a long run is sampled: a dense second, then a read in 10 s between two updates, and every two
// minutes six around one. The clocks drift apart by 3.6 ms meanwhile.
TEST(Timeline, LongRunsWithDriftAreCovered) {
  const Truth truth = mixed(3, 400);
  GpuSensors gpu;
  gpu.drift = 3e-5;
  gpu.gain = 1.01;
  const double period = gpu.edge_every * (1 + gpu.drift);
  const auto edge_after = [&](double t) {
    return gpu.phase + std::ceil((t - gpu.phase) / period) * period;
  };
  std::vector<double> times;
  for (double t = 0.1; t < 1.1; t += 0.025) times.push_back(t);
  for (int i = 1; 10 * i < 390; ++i) {
    times.push_back(edge_after(10.0 * i) - period / 2);
    if (i % 12 != 0) continue;
    for (int k = 0; k < 6; ++k) {
      times.push_back(edge_after(10.0 * i + 1) + 0.008 * (k - 2.5) - 0.0036);
    }
  }
  times.push_back(edge_after(395) - period / 2);
  EnergyTimeline timeline({gpu.counter(), gpu.ring()});
  for (const auto& r : gpu.samples(truth, 0, truth.end())) timeline.append(r);
  for (const auto& r : gpu.reads(truth, times)) timeline.append(r);
  std::mt19937 random(11);
  for (const double length : {0.1, 1.0, 5.0, 30.0}) {
    std::uniform_real_distribution<double> start(1.0, 394 - length);
    Score score;
    for (int i = 0; i < 200; ++i) {
      const double a = start(random);
      const auto m = timeline.energy(at(a), at(a + length));
      ASSERT_TRUE(m) << m.error().message;
      score.add(*m, truth.joules(a, a + length));
    }
    EXPECT_GE(score.coverage(), 0.9) << length;
    EXPECT_LT(std::abs(score.bias()), 0.01) << length;
    if (length >= 5) {
      EXPECT_LT(score.rms(), 0.01) << length;
    }
  }
}

// What a driver's buffer is late by is known to 1.5 ms, and steps that have the same place among
// all samples are out of place by as much. The counter's updates are placed by the samples.
TEST(Timeline, WindowsBetweenTwoPowersHoldWhatSamplesAreLateBy) {
  for (const bool is_regular : {true, false}) {
    SCOPED_TRACE(is_regular);
    Score score;
    for (unsigned seed = 1; seed <= 24; ++seed) {
      std::mt19937 random(seed);
      std::uniform_real_distribution<double> uniform(0, 1);
      Truth truth;
      truth.hold(70, 1.2 + 0.02 * uniform(random));
      while (truth.end() < 20) {
        truth.hold(uniform(random) < 0.6 ? 500 : 120,
                   is_regular ? 0.5 : 0.05 + 0.3 * uniform(random));
      }
      GpuSensors gpu;
      gpu.seed = seed;
      GpuSensors late = gpu;
      late.lag = 0.005 * uniform(random);
      EnergyTimeline timeline({gpu.counter(), gpu.ring()});
      for (const auto& r : late.samples(truth, 0, truth.end())) timeline.append(r);
      for (const auto& r : gpu.reads(truth, 0.1, truth.end())) timeline.append(r);
      for (double t = 2; t < 18; t += 0.13) {
        const auto m = timeline.energy(at(t), at(t + 1));
        ASSERT_TRUE(m) << m.error().message;
        score.add(*m, truth.joules(t, t + 1));
      }
    }
    EXPECT_GE(score.coverage(), 0.95);
  }
}

TEST(Timeline, AMixedIntervalIsNotUselesslyWide) {
  const Truth truth = mixed(1, 20);
  EnergyTimeline timeline = fused({}, truth);
  const auto second = timeline.energy(at(5), at(6));
  ASSERT_TRUE(second);
  EXPECT_LT(second->repeatability.joules(), 0.03 * second->energy.joules());
  const auto ten = timeline.energy(at(5), at(15));
  EXPECT_LT(ten->repeatability.joules(), 0.003 * ten->energy.joules());
}

}  // namespace
}  // namespace jouleprof::analysis
