// True power, and the readings of a GPU's sensors: the known answers of the tests.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "base/clock.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis::simulated {

using namespace std::chrono_literals;

inline constexpr model::SensorId kCounter{0};
inline constexpr model::SensorId kRing{1};
inline constexpr model::DomainId kGpu0{0};
inline const HostTime kEpoch = HostTime{1000s};

inline HostTime at(double s) { return kEpoch + duration_of(s); }

// True power: a list of steps; energy in closed form.
class Truth {
 public:
  // Appends `watts` for `duration` seconds.
  void hold(double watts, double duration) {
    times_.push_back(times_.back() + duration);
    joules_.push_back(joules_.back() + watts * duration);
  }
  double end() const { return times_.back(); }
  double joules(double t) const {
    auto next = std::upper_bound(times_.begin(), times_.end(), t);
    if (next == times_.begin())
      return (t - times_[0]) * (joules_[1] - joules_[0]) / (times_[1] - times_[0]);
    if (next == times_.end()) --next;
    const auto i = static_cast<std::size_t>(next - times_.begin());
    return joules_[i - 1] +
           (joules_[i] - joules_[i - 1]) * (t - times_[i - 1]) / (times_[i] - times_[i - 1]);
  }
  double joules(double a, double b) const { return joules(b) - joules(a); }
  // The energy observed up to t with this time constant; before time zero power was constant.
  double joules_seen(double t, double rise) const {
    if (rise <= 0) return joules(t);
    double power = joules_[1] / times_[1];
    // What was more than 40 time constants before has settled.
    const auto first = std::upper_bound(times_.begin() + 1, times_.end(), t - 40 * rise);
    for (auto i = static_cast<std::size_t>(std::max(first - times_.begin() - 1, std::ptrdiff_t{1}));
         i < times_.size() && times_[i - 1] < t; ++i) {
      const double level = (joules_[i] - joules_[i - 1]) / (times_[i] - times_[i - 1]);
      const double length = std::min(times_[i], t) - times_[i - 1];
      if (t - times_[i] > 40 * rise) {
        power = level;  // settled
        continue;
      }
      power = level + (power - level) * std::exp(-length / rise);
    }
    return joules(t) - rise * power;
  }

 private:
  std::vector<double> times_{0};
  std::vector<double> joules_{0};
};

// A function of time as fine steps.
inline Truth course(const std::function<double(double)>& watts, double length,
                    double step = 0.001) {
  Truth truth;
  const auto n = static_cast<long>(std::lround(length / step));
  for (long i = 0; i < n; ++i) truth.hold(watts((static_cast<double>(i) + 0.5) * step), step);
  return truth;
}

struct GpuSensors {
  unsigned seed = 1;
  double window = 0.025;
  double lag = 0.0025;
  double rise = 0;  // both sensors follow the load with a first-order lag
  double sample_every = 0.020;
  bool jitter = true;    // one stamp of five is 1 to 10 ms late, and some samples are missing
  double noise = 0.002;  // of a sample
  double gain = 1;       // of the samples against the counter
  double edge_every = 0.100;
  double phase = 0.037;
  double drift = 0;  // relative, of the device's clock
  double read_every = 0.100;
  double sums_every = 0;  // the counter adds up samples so far apart; 0: it integrates
  double sums_phase = 0.003;
  double earliest_visible = 0.0003;
  double latest_visible = 0.016;

  model::Sensor counter() const {
    model::Sensor s{kCounter, kGpu0, model::SensorKind::kEnergyCounter, "counter", {}, {}};
    s.traits.refresh = duration_of(edge_every);
    s.traits.quantum = Energy::millijoules(1);
    if (rise > 0) s.traits.rise = duration_of(rise);
    return s;
  }
  model::Sensor ring() const {
    model::Sensor s{kRing, kGpu0, model::SensorKind::kPowerRing, "ring", {}, {}};
    s.traits.refresh = duration_of(sample_every);
    s.traits.window = duration_of(window);
    s.traits.lag = duration_of(lag);
    if (rise > 0) s.traits.rise = duration_of(rise);
    return s;
  }

  std::vector<model::PowerReading> samples(const Truth& truth, double from, double to) const {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::normal_distribution<double> normal;
    std::vector<model::PowerReading> out;
    double last = -1;
    int turn = 0;
    for (double grid = from + window + lag; grid < to; grid += sample_every) {
      double t = grid;
      double stamp = 0;
      if (jitter) {
        t += 0.0003 * normal(random);
        const bool late = ++turn % 5 == 0;
        stamp = late ? 0.001 + 0.009 * uniform(random) : 0.0003 * normal(random);
        if (uniform(random) < 0.03) continue;
      }
      if (t + stamp <= last + 0.005) continue;
      last = t + stamp;
      const double mean =
          (truth.joules_seen(t - lag, rise) - truth.joules_seen(t - lag - window, rise)) / window;
      const double watts = mean * gain * (1 + noise * normal(random));
      out.push_back({kRing, at(t + stamp), Power::milliwatts(std::llround(watts * 1e3))});
    }
    return out;
  }

  // Reads at the given times.
  std::vector<model::CounterReading> reads(const Truth& truth,
                                           const std::vector<double>& times) const {
    std::mt19937 random(seed + 1000);
    std::uniform_real_distribution<double> uniform(0, 1);
    const double period = edge_every * (1 + drift);
    std::vector<double> sums{0};  // of the samples
    for (double t = sums_phase; sums_every > 0 && t < truth.end() + 1; t += sums_every) {
      const double from = truth.joules_seen(t - lag - window, rise);
      sums.push_back(sums.back() + (truth.joules_seen(t - lag, rise) - from) / window * sums_every);
    }
    const auto counted = [&](double edge) {
      if (sums_every <= 0) return truth.joules_seen(std::max(edge, 0.0), rise);
      const double taken = std::ceil((edge - sums_phase) / sums_every);
      return sums[std::min(static_cast<std::size_t>(std::max(taken, 0.0)), sums.size() - 1)];
    };
    std::vector<double> visible;  // of each edge
    for (long k = 0; static_cast<double>(k) * period < truth.end() + 1; ++k) {
      visible.push_back(phase + static_cast<double>(k) * period + earliest_visible +
                        (latest_visible - earliest_visible) * uniform(random));
    }
    std::vector<model::CounterReading> out;
    double busy_until = 0;
    for (double t : times) {
      t = std::max(t, busy_until);
      const double length = 0.0024 + 0.0006 * uniform(random) +
                            (uniform(random) < 0.25 ? 0.017 * uniform(random) : 0.0);
      const double sampled = t + length * uniform(random);
      busy_until = t + length;
      const auto seen = std::upper_bound(visible.begin(), visible.end(), sampled);
      const double edge = phase + (static_cast<double>(seen - visible.begin()) - 1) * period;
      const auto millijoules = std::llround((1e3 + counted(edge)) * 1e3);
      out.push_back({kCounter, at(t), at(t + length), Energy::millijoules(millijoules)});
    }
    return out;
  }
  std::vector<model::CounterReading> reads(const Truth& truth, double from, double to) const {
    std::vector<double> times;
    for (double t = from; t < to; t += read_every) times.push_back(t);
    return reads(truth, times);
  }
};

}  // namespace jouleprof::analysis::simulated
