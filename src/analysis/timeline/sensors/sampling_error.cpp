#include "analysis/timeline/sensors/sampling_error.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace jouleprof::analysis {

double sampling_error(std::span<const double> power, double step, const SamplingSensor& sensor) {
  const auto every = static_cast<std::size_t>(std::lround(sensor.every / step));
  const auto window =
      std::max<std::size_t>(static_cast<std::size_t>(std::lround(sensor.window / step)), 1);
  if (every < 2 || power.size() < 10 * every) return 0;
  // Up to each step, the energy that the sensor has followed; at first, what the whole has on
  // average.
  double all = 0;
  for (const double p : power) all += p;
  if (all <= 0) return 0;
  const double kept = sensor.time_constant > 0 ? std::exp(-step / sensor.time_constant) : 0.0;
  double followed = all / static_cast<double>(power.size());
  std::vector<double> sums(power.size() + 1);
  for (std::size_t i = 0; i < power.size(); ++i) {
    followed = power[i] + (followed - power[i]) * kept;
    sums[i + 1] = sums[i] + followed;
  }
  double most = 0;
  for (std::size_t phase = 0; phase < every; ++phase) {
    double sampled = 0;
    std::size_t count = 0;
    for (std::size_t end = window + phase; end < sums.size(); end += every, ++count) {
      sampled += (sums[end] - sums[end - window]) / static_cast<double>(window);
    }
    const std::size_t covered = std::min(count * every, power.size());
    const double energy = sums[covered];
    if (energy > 0) {
      most = std::max(most, std::abs(sampled * static_cast<double>(every) / energy - 1));
    }
  }
  return most;
}

double square_wave_error(double period, double duty, const SamplingSensor& sensor, double length) {
  constexpr double kStep = 0.25e-3;
  constexpr double kLongest = 60;
  if (period <= 0) return 0;
  std::vector<double> power;
  // Of each step, the part that is on: energy up to its end minus that up to its begin.
  const auto on = [&](double t) {
    const double whole = std::floor(t / period);
    return whole * duty * period + std::min(t - whole * period, duty * period);
  };
  const auto steps = static_cast<std::size_t>(std::min(length, kLongest) / kStep);
  for (std::size_t i = 0; i < steps; ++i) {
    const double t = static_cast<double>(i) * kStep;
    power.push_back((on(t + kStep) - on(t)) / kStep);
  }
  return sampling_error(power, kStep, sensor);
}

double period_of(std::span<const double> power, double step) {
  constexpr double kShortest = 4e-3;
  constexpr double kLongest = 0.25;
  constexpr std::size_t kMost = 20'000;  // values
  constexpr double kAlike = 0.5;         // correlation
  constexpr double kNearlyAsAlike = 0.9;
  power = power.first(std::min(power.size(), kMost));
  const auto longest = static_cast<std::size_t>(kLongest / step);
  if (power.size() < 4 * longest) return 0;
  double mean = 0;
  for (const double p : power) mean += p / static_cast<double>(power.size());
  const auto alike = [&](std::size_t lag) {
    double sum = 0;
    for (std::size_t i = longest; i < power.size(); ++i) {
      sum += (power[i] - mean) * (power[i - lag] - mean);
    }
    return sum;
  };
  const double own = alike(0);
  std::vector<double> found;
  for (std::size_t lag = 0; lag <= longest; ++lag) found.push_back(alike(lag));
  const auto from = static_cast<std::ptrdiff_t>(kShortest / step);
  const double best = *std::max_element(found.begin() + from, found.end());
  if (own <= 1e-12 * mean * mean * static_cast<double>(power.size())) return 0;  // constant
  if (best < kAlike * own) return 0;
  for (auto lag = static_cast<std::size_t>(from); lag < longest; ++lag) {
    const bool peak = found[lag] >= found[lag - 1] && found[lag] >= found[lag + 1];
    if (peak && found[lag] >= kNearlyAsAlike * best) return static_cast<double>(lag) * step;
  }
  return 0;
}

}  // namespace jouleprof::analysis
