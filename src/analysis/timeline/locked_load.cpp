#include "analysis/timeline/locked_load.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "analysis/timeline/sensors/error_model.h"
#include "model/device/sensor.h"
#include "model/recording.h"

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

std::vector<double> sampling_weights(double step, const SamplingSensor& sensor) {
  const auto every = std::max<long>(std::lround(sensor.every / step), 1);
  const auto window = std::clamp<long>(std::lround(sensor.window / step), 1, every);
  const double kept = sensor.time_constant > 0 ? std::exp(-step / sensor.time_constant) : 0.0;
  // What a sample has of the energy of one step, in all of the periods after it.
  const double first = (1 - kept) / (1 - std::pow(kept, every));
  std::vector<double> weights(static_cast<std::size_t>(every));
  for (long place = 0; place < every; ++place) {
    double sum = 0;
    for (long i = 1; i <= window; ++i) sum += std::pow(kept, (2 * every - place - i) % every);
    weights[static_cast<std::size_t>(place)] =
        first * sum * static_cast<double>(every) / static_cast<double>(window);
  }
  return weights;
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

namespace {

constexpr std::size_t kFewest = 20;  // windows or samples
constexpr double kRegular = 0.02;    // of the period: the middle half of the windows' begins
constexpr double kPartlyBusy[] = {0.05, 0.9};
constexpr int kFewestReadings = 3;  // of utilisation

double quantile(std::vector<double>& values, double q) {
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

std::optional<SuspectedLock> by_windows(const model::Recording& recording, HostTime begin,
                                        HostTime end, const SamplingSensor& sensor) {
  struct Times {
    std::vector<HostTime> begins;
    double busy = 0;
  };
  std::map<std::string, Times> names;
  for (const auto& window : recording.windows) {
    if (window.begin < begin || window.end > end) continue;
    auto& times = names[window.name];
    times.begins.push_back(window.begin);
    times.busy += seconds(window.end - window.begin);
  }
  std::optional<SuspectedLock> worst;
  for (auto& [name, times] : names) {
    auto& begins = times.begins;
    if (begins.size() < kFewest) continue;
    std::ranges::sort(begins);
    std::vector<double> apart;
    for (std::size_t i = 1; i < begins.size(); ++i) {
      apart.push_back(seconds(begins[i] - begins[i - 1]));
    }
    const double middle = quantile(apart, 0.5);
    if (quantile(apart, 0.75) - quantile(apart, 0.25) > kRegular * middle) continue;
    const double length = seconds(begins.back() - begins.front());
    const double period = length / std::round(length / middle);
    const double duty = times.busy / static_cast<double>(begins.size()) / period;
    const double error = square_wave_error(period, std::clamp(duty, 0.05, 0.95), sensor, length);
    if (error > kErrors.least_locked && (!worst || error > worst->error))
      worst = {period, error, true};
  }
  return worst;
}

}  // namespace

void widen(model::Measurement& measurement, Energy by) {
  for (Energy* half : {&measurement.error, &measurement.repeatability}) {
    *half = Energy::joules(std::hypot(half->joules(), by.joules()));
  }
}

std::optional<SuspectedLock> suspected_lock(const model::Recording& recording,
                                            const model::Domain& domain, EnergyTimeline& timeline,
                                            HostTime begin, HostTime end, double rest_watts) {
  const auto& power = timeline.sensors().power;
  if (!power || power->kind != model::SensorKind::kPowerRing || !power->traits.refresh ||
      !power->traits.window || power->provenance != model::Provenance::kMeasured) {
    return std::nullopt;
  }
  const SamplingSensor sensor{seconds(*power->traits.refresh), seconds(*power->traits.window),
                              timeline.time_constant()};
  if (sensor.window >= kErrors.locked_seen * sensor.every) return std::nullopt;
  if (auto found = by_windows(recording, begin, end, sensor)) return found;
  double busy = 0;
  int readings = 0;
  for (const auto& r : gauge_of(recording, domain, model::gauge::kGpuUtilisation, begin, end)) {
    busy += r.value;
    ++readings;
  }
  if (readings < kFewestReadings) return std::nullopt;
  const double duty = busy / readings;
  if (duty < kPartlyBusy[0] || duty > kPartlyBusy[1]) return std::nullopt;
  double sum = 0;
  double squares = 0;
  std::size_t count = 0;
  for (const ObservedPower& s : timeline.observations(begin, end, {begin})) {
    if (s.counter) continue;
    sum += s.watts - rest_watts;
    squares += std::pow(s.watts - rest_watts, 2);
    ++count;
  }
  if (count < kFewest) return std::nullopt;
  const double mean = sum / static_cast<double>(count);
  const double spread =
      std::sqrt(std::max(squares / static_cast<double>(count) - mean * mean, 0.0));
  if (mean <= 0 || spread > kErrors.flat_samples * mean) return std::nullopt;
  return SuspectedLock{sensor.every, square_wave_error(sensor.every, duty, sensor), false};
}

}  // namespace jouleprof::analysis
