#include "analysis/timeline/sensors/sensor_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "analysis/timeline/simulated_sensors_test.h"
#include "base/file.h"
#include "base/text.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;

constexpr double kIdle = 120;
constexpr double kStep = 300;

struct Load {
  Truth truth;  // of the board
  std::vector<BusySpan> busy;
};

// Two seconds of rest, bursts and pauses of 30 to 400 ms for so long, rest again.
Load bursts(unsigned seed, double length = 15, double step = kStep) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> part(0.030, 0.400);
  Load load;
  load.truth.hold(kIdle, 2);
  while (load.truth.end() < 2 + length) {
    const double begin = load.truth.end();
    load.truth.hold(kIdle + step, part(random));
    load.busy.push_back({at(begin), at(load.truth.end())});
    load.truth.hold(kIdle, part(random));
  }
  load.truth.hold(kIdle, 2);
  return load;
}

// A sensor that is renewed every `refresh` and polled at about 1 kHz.
std::vector<model::PowerReading> polled(const std::function<double(double)>& value, double end,
                                        double refresh, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> gap(0.0005, 0.0015);
  std::vector<model::PowerReading> out;
  for (double t = 1.5; t < end; t += gap(random)) {
    const double renewed = std::floor((t - 0.013) / refresh) * refresh + 0.013;
    out.push_back({kRing, at(t), Power::milliwatts(std::llround(value(renewed) * 1e3))});
  }
  return out;
}

std::vector<model::PowerReading> polled(const Load& load, double refresh, double window, double lag,
                                        unsigned seed = 1) {
  std::mt19937 random(seed + 100);
  std::vector<double> noise(4000);
  for (double& n : noise) n = std::normal_distribution<double>(0, 1)(random);
  const auto value = [&](double t) {
    return load.truth.joules(t - lag - window, t - lag) / window +
           noise[static_cast<std::size_t>(std::lround(t / refresh)) % noise.size()];
  };
  return polled(value, load.truth.end(), refresh, seed);
}

double ms(Duration d) { return seconds(d) * 1e3; }

TEST(SensorFit, FindsWindowAndLagOfARing) {
  struct Case {
    double window, lag;
  };
  for (const auto& [window, lag] : {Case{0.025, 0.0025}, Case{0.025, 0}, Case{0.025, 0.010},
                                    Case{0.010, 0.004}, Case{0.100, 0.005}, Case{1.0, 0.003}}) {
    const Load load = bursts(7);
    GpuSensors sensors;
    sensors.window = window;
    sensors.lag = lag;
    const auto readings = sensors.samples(load.truth, 0.5, load.truth.end());
    const auto fit = fit_power_sensor(load.busy, readings, Stamps::kOfSensor);
    ASSERT_TRUE(fit) << fit.error().message;
    // A window of a second hides edges: both its ends are seen through noise.
    const double tolerance = window < 0.5 ? 1.5 : 6;
    EXPECT_NEAR(ms(fit->window.value), window * 1e3, tolerance) << window << " " << lag;
    EXPECT_NEAR(ms(fit->lag.value), lag * 1e3, tolerance) << window << " " << lag;
    EXPECT_NEAR(ms(fit->refresh.value), 20, 0.1);
    EXPECT_NEAR(fit->idle.watts(), kIdle, 5);
    EXPECT_NEAR(fit->step.watts(), kStep, 10);
    EXPECT_GT(ms(fit->window.error), 0.05);
    EXPECT_GT(ms(fit->lag.error), 0.02);  // at zero, too
    EXPECT_GT(fit->r_squared, 0.98);
    EXPECT_FALSE(fit->first_order) << window << " " << lag;
  }
}

TEST(SensorFit, IsExactWithoutNoise) {
  const Load load = bursts(3);
  GpuSensors sensors;
  sensors.jitter = false;
  sensors.noise = 0;
  sensors.window = 0.025;
  sensors.lag = 0.0025;
  const auto fit = fit_power_sensor(load.busy, sensors.samples(load.truth, 0.5, load.truth.end()),
                                    Stamps::kOfSensor);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(ms(fit->window.value), 25, 0.05);
  EXPECT_NEAR(ms(fit->lag.value), 2.5, 0.05);
  EXPECT_NEAR(ms(fit->refresh.value), 20, 1e-3);
  EXPECT_LT(ms(fit->window.error), 0.1);
  EXPECT_LT(ms(fit->lag.error), 0.1);
}

TEST(SensorFit, FindsThoseOfPolledSensors) {
  const Load load = bursts(11);
  const auto instant =
      fit_power_sensor(load.busy, polled(load, 0.100, 0.025, 0.008), Stamps::kOfPoll);
  ASSERT_TRUE(instant) << instant.error().message;
  EXPECT_NEAR(ms(instant->refresh.value), 100, 0.1);
  EXPECT_NEAR(ms(instant->window.value), 25, 1.5);
  EXPECT_NEAR(ms(instant->lag.value), 8, 1.5);

  const auto average = fit_power_sensor(load.busy, polled(load, 0.100, 1.0, 0), Stamps::kOfPoll);
  ASSERT_TRUE(average) << average.error().message;
  EXPECT_NEAR(ms(average->refresh.value), 100, 0.1);
  EXPECT_NEAR(ms(average->window.value), 1000, 10);
  EXPECT_NEAR(ms(average->lag.value), 0, 5);

  const auto old = fit_power_sensor(load.busy, polled(load, 0.020, 0.010, 0), Stamps::kOfPoll);
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_NEAR(ms(old->refresh.value), 20, 0.1);
  EXPECT_NEAR(ms(old->window.value), 10, 1);
}

TEST(SensorFit, IntervalsHoldTheTruth) {
  int window_in = 0;
  int lag_in = 0;
  constexpr int kRuns = 20;
  for (unsigned seed = 1; seed <= kRuns; ++seed) {
    const Load load = bursts(seed, 10);
    GpuSensors sensors;
    sensors.seed = seed;
    sensors.lag = 0.005;
    const auto fit = fit_power_sensor(load.busy, sensors.samples(load.truth, 0.5, load.truth.end()),
                                      Stamps::kOfSensor);
    ASSERT_TRUE(fit);
    window_in += std::abs(ms(fit->window.value) - 25) <= ms(fit->window.error) + 0.05 ? 1 : 0;
    lag_in += std::abs(ms(fit->lag.value) - 5) <= ms(fit->lag.error) + 0.05 ? 1 : 0;
    EXPECT_LT(ms(fit->window.error), 3);
    EXPECT_LT(ms(fit->lag.error), 3);
  }
  EXPECT_GE(window_in, 16);
  EXPECT_GE(lag_in, 16);
}

TEST(SensorFit, FindsATimeConstant) {
  const Load load = bursts(5);
  // dP/dt = (truth - P) / 60 ms, in steps of 0.2 ms, then the mean over 10 ms.
  std::vector<double> joules{0};
  double watts = kIdle;
  constexpr double kTick = 0.0002;
  for (double t = 0; t < load.truth.end(); t += kTick) {
    watts += kTick / 0.060 * (load.truth.joules(t, t + kTick) / kTick - watts);
    joules.push_back(joules.back() + watts * kTick);
  }
  std::vector<model::PowerReading> readings;
  for (double t = 0.5; t < load.truth.end() - 0.1; t += 0.02) {
    const auto i = static_cast<std::size_t>(std::lround(t / kTick));
    readings.push_back({kRing, at(t), Power::watts((joules[i] - joules[i - 50]) / 0.010)});
  }
  const auto fit = fit_power_sensor(load.busy, readings, Stamps::kOfSensor);
  ASSERT_TRUE(fit) << fit.error().message;
  ASSERT_TRUE(fit->first_order);
  EXPECT_NEAR(ms(fit->first_order->time_constant), 60, 3);
}

TEST(SensorFit, FindsThoseOfARecordedH100) {
  const auto rows = [](const std::string& name) {
    const auto text = read_file(std::string(JOULEPROF_SOURCE_DIR) + "/tests/fixtures/h100/" + name);
    EXPECT_TRUE(text) << name;
    std::vector<std::vector<std::string>> out;
    if (!text) return out;
    for (const auto line : split(*text, '\n')) {
      auto& row = out.emplace_back();
      for (const auto field : split(trim(line), ',')) row.emplace_back(field);
      if (row.size() < 2) out.pop_back();
    }
    out.erase(out.begin());
    return out;
  };
  std::vector<BusySpan> busy;
  for (const auto& r : rows("square_events.csv")) {
    busy.push_back(
        {HostTime{Duration{*parse_integer(r[1])}}, HostTime{Duration{*parse_integer(r[2])}}});
  }
  std::vector<model::PowerReading> ring;
  for (const auto& r : rows("square_samples.csv")) {
    ring.push_back({kRing, HostTime{Duration{*parse_integer(r[0]) * 1000}},
                    Power::milliwatts(*parse_integer(r[1]))});
  }
  std::vector<model::PowerReading> average;
  for (const auto& r : rows("square_poll.csv")) {
    const auto power = Power::milliwatts(*parse_integer(r[2]));
    if (!average.empty() && average.back().power == power) continue;
    average.push_back({kRing, HostTime{Duration{*parse_integer(r[0])}}, power});
  }
  const auto of_ring = fit_power_sensor(busy, ring, Stamps::kOfSensor);
  ASSERT_TRUE(of_ring) << of_ring.error().message;
  EXPECT_NEAR(ms(of_ring->refresh.value), 20, 0.2);
  EXPECT_NEAR(ms(of_ring->window.value), 26, 4);
  EXPECT_LT(ms(of_ring->lag.value), 5);
  const auto of_average = fit_power_sensor(busy, average, Stamps::kOfSensor);
  ASSERT_TRUE(of_average) << of_average.error().message;
  EXPECT_NEAR(ms(of_average->refresh.value), 100, 0.5);
  EXPECT_NEAR(ms(of_average->window.value), 1000, 20);
}

TEST(SensorFit, RefusesWeakOrForeignLoads) {
  const Load load = bursts(2);
  GpuSensors sensors;
  const auto good = sensors.samples(load.truth, 0.5, load.truth.end());
  const auto code = [](const auto& result) {
    return result ? std::optional<Errc>{} : std::optional<Errc>{result.error().code};
  };
  const auto message = [](const auto& result) { return result ? "" : result.error().message; };

  const Load weak = bursts(2, 15, 12);
  const auto small = fit_power_sensor(weak.busy, sensors.samples(weak.truth, 0.5, weak.truth.end()),
                                      Stamps::kOfSensor);
  EXPECT_EQ(code(small), Errc::kUnavailable);
  EXPECT_NE(message(small).find("at least 20 W"), std::string::npos) << message(small);

  // The power of another load.
  const Load other = bursts(99);
  const auto foreign = fit_power_sensor(
      load.busy, sensors.samples(other.truth, 0.5, other.truth.end()), Stamps::kOfSensor);
  EXPECT_EQ(code(foreign), Errc::kUnavailable);

  // Nothing changes at all.
  std::vector<model::PowerReading> flat = good;
  for (auto& r : flat) r.power = Power::watts(250);
  EXPECT_EQ(code(fit_power_sensor(load.busy, flat, Stamps::kOfSensor)), Errc::kUnavailable);
  EXPECT_EQ(code(fit_power_sensor(load.busy, flat, Stamps::kOfPoll)), Errc::kUnavailable);

  // Good readings, but one in twenty-five.
  std::vector<model::PowerReading> few;
  for (std::size_t i = 0; i < good.size(); i += 25) few.push_back(good[i]);
  const auto thin = fit_power_sensor(load.busy, few, Stamps::kOfSensor);
  EXPECT_EQ(code(thin), Errc::kUnavailable);
  EXPECT_NE(message(thin).find("new values"), std::string::npos) << message(thin);
  EXPECT_EQ(code(fit_power_sensor(load.busy, {}, Stamps::kOfPoll)), Errc::kUnavailable);

  EXPECT_EQ(code(fit_power_sensor({}, good, Stamps::kOfSensor)), Errc::kInvalidArgument);
  std::vector<BusySpan> backwards = load.busy;
  std::swap(backwards.front(), backwards.back());
  EXPECT_EQ(code(fit_power_sensor(backwards, good, Stamps::kOfSensor)), Errc::kInvalidArgument);
}

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
