#include "analysis/timeline/sensors/observed_sensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/timeline/simulated_timeline_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;

// A sensor that the table of boards has at 20 ms and 10 ms. It is polled every 20 ms and gives a
// new value every 100 ms, the mean of the last 25 ms.
struct Board {
  explicit Board(double every = 0.1) {
    sensor.id = kRing;
    sensor.domain = kGpu0;
    sensor.kind = model::SensorKind::kPowerInstant;
    sensor.traits.refresh = duration_of(0.02);
    sensor.traits.window = duration_of(0.01);
    gpu.jitter = false;
    gpu.sample_every = every;
    gpu.lag = 0;
  }

  std::vector<model::PowerReading> polls(const Truth& truth) const {
    const auto updates = gpu.samples(truth, 0, truth.end());
    std::vector<model::PowerReading> out;
    std::size_t next = 0;
    for (double t = 0.2; t < truth.end(); t += 0.02) {
      while (next + 1 < updates.size() && updates[next + 1].at <= at(t)) ++next;
      out.push_back({kRing, at(t), updates[next].power});
    }
    return out;
  }

  model::Sensor sensor;
  GpuSensors gpu;
};

Truth square(double period, double length) {
  Truth truth;
  truth.hold(120, 1 + period * 0.37);
  while (truth.end() < length) truth.hold(500, period / 2), truth.hold(120, period / 2);
  return truth;
}

double refresh_of(const model::Sensor& sensor) { return seconds(*sensor.traits.refresh); }

TEST(ObservedSensor, RepeatedValuesWinOverTheTable) {
  const Board board;
  const auto seen = as_observed(board.sensor, board.polls(square(0.7, 20)));
  EXPECT_NEAR(refresh_of(seen), 0.1, 0.021);
}

TEST(ObservedSensor, RepeatedValuesShowAPeriodThatNoTableHas) {
  Board board;
  board.sensor.traits.refresh.reset();
  board.sensor.traits.window.reset();
  const auto seen = as_observed(board.sensor, board.polls(square(0.7, 20)));
  ASSERT_TRUE(seen.traits.refresh);
  EXPECT_NEAR(refresh_of(seen), 0.1, 0.021);
}

TEST(ObservedSensor, TheTableStaysWhereReadingsAgree) {
  const Board quick(0.02);
  EXPECT_EQ(refresh_of(as_observed(quick.sensor, quick.polls(square(0.7, 20)))), 0.02);
  EXPECT_EQ(refresh_of(as_observed(quick.sensor, {})), 0.02);
  auto ring = quick.sensor;
  ring.kind = model::SensorKind::kPowerRing;
  EXPECT_EQ(refresh_of(as_observed(ring, Board().polls(square(0.7, 20)))), 0.02);
}

TEST(ObservedSensor, ASteadyLoadShowsNoPeriod) {
  Board board;
  board.gpu.noise = 0;
  EXPECT_EQ(refresh_of(as_observed(board.sensor, board.polls(square(4, 30)))), 0.02);
}

// It sees a quarter of the time.
TEST(ObservedSensor, SquareWavesLieWithinTheInterval) {
  int inside = 0, all = 0;
  std::mt19937 random(7);
  std::uniform_real_distribution<double> exponent(std::log(0.02), std::log(3));
  for (int i = 0; i < 400; ++i) {
    Board board;
    board.gpu.seed = static_cast<unsigned>(i);
    const double period = std::exp(exponent(random));
    const Truth truth = square(period, 20);
    const auto polls = board.polls(truth);
    EnergyTimeline timeline({std::nullopt, as_observed(board.sensor, polls)});
    for (const auto& r : polls) timeline.append(r);
    const auto m = timeline.energy(at(2), at(19));
    ASSERT_TRUE(m);
    const double error = m->energy.joules() - truth.joules(2, 19);
    ++all;
    inside += std::abs(error) <= m->repeatability.joules() ? 1 : 0;
  }
  EXPECT_GE(inside, 0.95 * all) << inside << " of " << all;
}

// A load of 104 ms on a sensor of 100 ms shows one phase after the other; a part of the run holds a
// few of them. The board's utilisation is the same all the time.
TEST(ObservedSensor, PartsOfALoadThatDriftsThroughItsPhasesLieWithinTheInterval) {
  Board board;
  board.sensor.traits.refresh = duration_of(0.1);
  board.sensor.traits.window = duration_of(0.025);
  Truth truth;
  truth.hold(120, 1);
  while (truth.end() < 12) truth.hold(500, 0.052), truth.hold(120, 0.052);
  constexpr model::SensorId kBusy{7};
  EnergyTimeline timeline({std::nullopt, board.sensor, {}, {}, kBusy});
  for (double t = 0.2; t < truth.end(); t += 0.02) {
    timeline.append(model::GaugeReading{kBusy, at(t), t < 1 ? 0 : 0.5});
  }
  for (const auto& r : board.polls(truth)) timeline.append(r);
  for (double begin = 2; begin < 9; begin += 0.3) {
    const auto m = timeline.energy(at(begin), at(begin + 1.8));
    ASSERT_TRUE(m);
    EXPECT_NEAR(m->energy.joules(), truth.joules(begin, begin + 1.8), m->repeatability.joules())
        << begin;
  }
}

}  // namespace
}  // namespace jouleprof::analysis
