// A model of a GPU's sensors and of their faults: recordings whose true energy is known.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "analysis/timeline/simulated_sensors_test.h"
#include "model/device/sensor.h"
#include "model/recording.h"

namespace jouleprof::coverage {

using analysis::simulated::at;
using analysis::simulated::Truth;

inline constexpr model::SensorId kCounterId{0}, kPowerId{1}, kAverageId{2}, kUtilisationId{3},
    kLimitId{4};
inline constexpr double kRestWatts = 80;
inline constexpr double kIdleBefore = 1.2;  // seconds of rest before the work
inline constexpr double kIdleAfter = 0.9;

// A periodic sensor as it is, and as the recording says that it is. Seconds.
struct Periodic {
  double refresh = 0;  // 0: the board has none
  double window = 0;
  double lag = 0;
  double said_refresh = 0;  // 0: as it is
  double said_window = 0;
};

struct Board {
  Periodic ring;     // the driver's buffer of stamped samples
  Periodic instant;  // polled as often as it is said to renew
  Periodic counter;
  double rise = 0;       // first-order lag of buffer and counter
  bool sums = false;     // the counter adds up means such as the buffer's, 20 ms apart
  bool average = false;  // mean of the last second, read every 0.9 s
  bool utilisation = false;
  bool updates_read = false;  // each of the counter's updates; else a dense second, then every 5 s
  bool confirmed = true;      // a read after the last update but one, and one after the last
  double start_joules = 100'000;  // what the counter holds at the start
};

inline Board fused_board() {
  Board b;
  b.ring = {.refresh = 0.020, .window = 0.025, .lag = 0.0025};
  b.counter = {.refresh = 0.100};
  return b;
}
inline Board lagging_board() {  // as Hopper
  Board b = fused_board();
  b.ring = {.refresh = 0.020, .window = 0.003, .lag = 0.0027};
  b.rise = 0.014;
  return b;
}
inline Board half_seen_board() {  // as Volta
  Board b = fused_board();
  b.ring = {.refresh = 0.020, .window = 0.010};
  return b;
}
inline Board polled_board() {  // as A100's field of instant power, 25 of each 100 ms
  Board b;
  b.instant = {.refresh = 0.100, .window = 0.025};
  return b;
}

// What the sensors report instead of the truth.
struct Faults {
  std::function<double(double t, double joules)> counter;  // joules since the start
  std::function<std::optional<double>(double t, double watts, int index)> power;
  // Each timestamp from the middle of the work on comes twice, the other value half as high again:
  // 1 after the true one, 2 before it.
  int two_values = 0;
};

struct Run {
  model::Recording recording;
  double begin = 0;
  double end = 0;
  double joules = 0;  // the truth over the work
  double rest_after = kRestWatts;
  std::string text;  // of the setting, for people
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  double uniform(double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(engine_);
  }
  double normal() { return normal_(engine_); }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return one_of(std::vector<T>(values));
  }
  template <class T>
  T one_of(const std::vector<T>& values) {
    const auto at = static_cast<std::size_t>(uniform(0, 1) * static_cast<double>(values.size()));
    return values[std::min(at, values.size() - 1)];
  }

 private:
  std::mt19937 engine_;
  std::normal_distribution<double> normal_;
};

// Power over time. Work begins after kIdleBefore.
using Load = std::function<void(Truth&, double length, Random&)>;

inline Load constant_load(double watts = 250) {
  return [watts](Truth& t, double length, Random&) { t.hold(watts, length); };
}
// Levels of random height and length.
inline Load random_load(double shortest, double longest) {
  return [=](Truth& t, double length, Random& random) {
    const double end = t.end() + length;
    while (t.end() < end - 1e-9) {
      t.hold(random.uniform(120, 600), std::min(random.uniform(shortest, longest), end - t.end()));
    }
  };
}
// At a fixed rate, from any phase on: `high` for a part of the busy time, `middle` for its rest,
// then `low`. `jitter` of the period.
inline Load two_level_load(double period, double duty, double part, double jitter, double high,
                           double middle, double low) {
  return [=](Truth& t, double length, Random& random) {
    const double begin = t.end();
    const double end = begin + length;
    double next = begin - random.uniform(0, period);
    const auto hold = [&](double watts, double until) {
      const double to = std::min(until, end);
      if (to > t.end() + 1e-9) t.hold(watts, to - t.end());
    };
    while (t.end() < end - 1e-9) {
      hold(high, next + part * duty * period);
      hold(middle, next + duty * period);
      hold(low, next + period);
      next += period + jitter * period * random.normal();
    }
  };
}
inline Load locked_load(double period, double duty, double jitter = 0) {
  return two_level_load(period, duty, 1, jitter, 500, 500, 120);
}

struct Setting {
  Board board;
  Load load = constant_load();
  double length = 5;
  Faults faults = {};
  double rest_after = kRestWatts;
  double utilisation = 1;  // mean over the work
  std::string text = {};
};

inline Run make_run(const Setting& s, unsigned seed) {
  Random random(seed * 7919 + 13);
  Truth truth;
  truth.hold(kRestWatts, kIdleBefore);
  s.load(truth, s.length, random);
  const double work_end = kIdleBefore + s.length;
  truth.hold(s.rest_after, work_end + kIdleAfter + 2 - truth.end());
  const double record_end = work_end + kIdleAfter;

  Run out;
  out.begin = kIdleBefore;
  out.end = work_end;
  out.joules = truth.joules(out.begin, out.end);
  out.text = s.text;
  out.rest_after = s.rest_after;
  auto& r = out.recording;
  r.run.source = "run";
  r.run.complete = true;
  r.run.work_begin = at(out.begin);
  r.run.work_end = at(out.end);
  r.idle_spans = {{at(0), at(kIdleBefore - 0.05)}, {at(work_end + 0.05), at(record_end)}};
  r.domains.push_back({});
  r.domains[0].kind = model::DomainKind::kGpu;
  r.domains[0].device = "gpu0";
  const auto add_sensor = [&](model::SensorId id, model::SensorKind kind, std::string name,
                              const Periodic& p) {
    model::Sensor sensor{id, r.domains[0].id, kind, std::move(name), {}, {}};
    sensor.provenance = model::Provenance::kMeasured;
    const double refresh = p.said_refresh > 0 ? p.said_refresh : p.refresh;
    const double window = p.said_window > 0 ? p.said_window : p.window;
    if (refresh > 0) sensor.traits.refresh = duration_of(refresh);
    if (window > 0) sensor.traits.window = duration_of(window);
    if (kind != model::SensorKind::kGauge) sensor.traits.lag = duration_of(p.lag);
    r.sensors.push_back(std::move(sensor));
    return &r.sensors.back().traits;
  };
  const auto distort = [&](double t, double watts, int index) {
    return s.faults.power ? s.faults.power(t, watts, index) : std::optional(watts);
  };
  r.sensors.reserve(8);

  if (s.board.ring.refresh > 0) {
    auto* traits = add_sensor(kPowerId, model::SensorKind::kPowerRing, "samples", s.board.ring);
    if (s.board.rise > 0) traits->rise = duration_of(s.board.rise);
    analysis::simulated::GpuSensors gpu;
    gpu.seed = seed;
    gpu.window = s.board.ring.window;
    gpu.lag = s.board.ring.lag;
    gpu.rise = s.board.rise;
    gpu.sample_every = s.board.ring.refresh;
    int index = 0;
    const double shift = random.uniform(0, gpu.sample_every);
    for (auto reading : gpu.samples(truth, shift, record_end)) {
      const double t = seconds(reading.at - at(0));
      const auto watts = distort(t, reading.power.watts(), index++);
      if (!watts) continue;
      reading.power = Power::watts(*watts);
      reading.sensor = kPowerId;
      auto other = reading;
      other.power = reading.power * 1.5;
      const bool twice = s.faults.two_values > 0 && t > out.begin + 0.5 * s.length;
      if (twice && s.faults.two_values == 2) std::swap(reading, other);
      r.readings.powers.push_back(reading);
      if (twice) r.readings.powers.push_back(other);
    }
  }
  if (s.board.instant.refresh > 0) {
    const Periodic& p = s.board.instant;
    add_sensor(kPowerId, model::SensorKind::kPowerInstant, "instant", p);
    const double every = p.said_refresh > 0 ? p.said_refresh : p.refresh;
    const double phase = random.uniform(0, p.refresh);
    int index = 0;
    double t = random.uniform(0, every);
    for (; t < record_end; t += every * random.uniform(1.0, 1.004)) {
      const double edge = std::floor((t - phase) / p.refresh) * p.refresh + phase;
      if (edge < p.window + p.lag) continue;
      const double mean = truth.joules(edge - p.lag - p.window, edge - p.lag) / p.window;
      const auto noise = std::mt19937(seed + static_cast<unsigned>(std::lround(edge * 1e3)))() %
                         2001;  // the same at each read of one value
      const double noisy = mean * (1 + 0.002 * (static_cast<double>(noise) / 1000 - 1));
      if (const auto watts = distort(t, std::round(noisy * 1e3) / 1e3, index++)) {
        r.readings.powers.push_back({kPowerId, at(t), Power::watts(*watts)});
      }
    }
  }
  if (s.board.average) {
    add_sensor(kAverageId, model::SensorKind::kPowerAverage, "average",
               {.refresh = 0.1, .window = 1.0});
    const double phase = random.uniform(0, 0.1);
    for (double t = 1.0 + random.uniform(0, 0.1); t < record_end; t += 0.9) {
      const double edge = std::floor((t - phase) / 0.1) * 0.1 + phase;
      const double from = std::max(edge - 1.0, 0.0);
      const double mean = (truth.joules(from, edge) + kRestWatts * (1.0 - (edge - from)));
      r.readings.powers.push_back({kAverageId, at(t), Power::watts(mean)});
    }
  }
  if (s.board.counter.refresh > 0) {
    auto* traits =
        add_sensor(kCounterId, model::SensorKind::kEnergyCounter, "counter", s.board.counter);
    traits->quantum = Energy::millijoules(1);
    traits->window.reset();
    traits->lag.reset();
    if (s.board.rise > 0) traits->rise = duration_of(s.board.rise);
    analysis::simulated::GpuSensors gpu;
    gpu.seed = seed;
    gpu.rise = s.board.rise;
    gpu.edge_every = s.board.counter.refresh;
    if (s.board.sums) {
      gpu.sums_every = 0.02;
      gpu.window = s.board.ring.window;
      gpu.lag = s.board.ring.lag;
      gpu.sums_phase = random.uniform(0, gpu.sums_every);
    }
    gpu.phase = random.uniform(0, gpu.edge_every);
    std::vector<double> times;
    const double said =
        s.board.counter.said_refresh > 0 ? s.board.counter.said_refresh : gpu.edge_every;
    if (s.board.updates_read) {
      for (double t = 0.05; t < record_end; t += said) times.push_back(t);
    } else {
      for (double t = 0.05; t < 1.05; t += 0.025) times.push_back(t);
      for (double t = 6.05; t < record_end - 0.5; t += 5) times.push_back(t);
    }
    // The last read, and one after the next update.
    if (s.board.confirmed) times.push_back(record_end - 1.3 * said);
    times.push_back(record_end);
    std::sort(times.begin(), times.end());
    for (auto reading : gpu.reads(truth, times)) {
      const double t = seconds(reading.before - at(0));
      const double joules = reading.total.joules() - 1e3;
      const double said_joules = s.faults.counter ? s.faults.counter(t, joules) : joules;
      reading.total = Energy::millijoules(
          std::llround((std::max(s.board.start_joules + said_joules, 0.0)) * 1e3));
      reading.sensor = kCounterId;
      r.readings.counters.push_back(reading);
    }
  }
  const auto add_gauge = [&](model::SensorId id, std::string_view name) {
    add_sensor(id, model::SensorKind::kGauge, std::string(name), {});
  };
  add_gauge(kLimitId, model::gauge::kPowerLimit);
  if (s.board.utilisation) add_gauge(kUtilisationId, model::gauge::kGpuUtilisation);
  for (double t = 0.1; t < record_end; t += 0.9) {
    r.readings.gauges.push_back({kLimitId, at(t), 700});
    if (!s.board.utilisation) continue;
    const bool works = t > out.begin && t < out.end;
    r.readings.gauges.push_back({kUtilisationId, at(t), works ? s.utilisation : 0.0});
  }
  return out;
}

}  // namespace jouleprof::coverage
