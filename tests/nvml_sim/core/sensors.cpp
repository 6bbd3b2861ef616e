#include "nvml_sim/core/sensors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

namespace jouleprof::nvml_sim {
namespace {

// SplitMix64's mixing step: neighbouring inputs give unrelated outputs.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11U) * 0x1p-53; }

double mean_watts(const EnergyBetween& energy, double end, double window) {
  return energy(end - window, end) / window;
}

double reading(double watts, double gain_error, double noise_watts, const Noise& noise,
               std::int64_t number) {
  const double error = noise_watts > 0 ? noise_watts * noise.gaussian(number) : 0;
  return std::max(0.0, watts * (1 + gain_error) + error);
}

// What a first-order lag observes is an exponentially weighted mean of the past, which is taken in
// steps: so short that even a pulse of a third of a time constant comes out smooth.
struct Past {
  double age = 0;  // in time constants
  double weight = 0;
};

constexpr std::size_t kPastSteps = 8 + 12 + 15;

std::array<Past, kPastSteps> pasts() {
  struct Steps {
    double end;  // in time constants
    int count;
  };
  std::array<Past, kPastSteps> out;
  std::size_t next = 0;
  double from = 0;
  for (const Steps steps : {Steps{1, 8}, Steps{3, 12}, Steps{8, 15}}) {
    const double step = (steps.end - from) / steps.count;
    for (int i = 0; i < steps.count; ++i, from += step) {
      out[next++] = {from + step / 2, std::exp(-from) - std::exp(-from - step)};
    }
  }
  out.back().weight += std::exp(-from);  // all that is older
  return out;
}

const std::array<Past, kPastSteps> kPasts = pasts();

}  // namespace

EnergyBetween observed(EnergyBetween energy, double rise) {
  if (rise <= 0) return energy;
  return [energy = std::move(energy), rise](double begin, double end) {
    double joules = 0;
    for (const Past& past : kPasts) {
      const double age = past.age * rise;
      joules += past.weight * energy(begin - age, end - age);
    }
    return joules;
  };
}

Noise::Noise(std::uint64_t seed, std::uint64_t stream) : state_(mix(mix(seed) ^ stream)) {}

std::uint64_t Noise::bits(std::int64_t number, std::uint64_t salt) const {
  return mix(mix(state_ ^ static_cast<std::uint64_t>(number)) + salt);
}

double Noise::uniform(std::int64_t number) const { return unit(bits(number, 1)); }

double Noise::gaussian(std::int64_t number) const {
  // Box and Muller; 1 - u avoids the logarithm of 0.
  const double radius = std::sqrt(-2 * std::log(1 - unit(bits(number, 2))));
  return radius * std::cos(2 * std::numbers::pi * unit(bits(number, 3)));
}

std::vector<RingSample> ring_at(const RingSpec& spec, const EnergyBetween& energy,
                                const Noise& noise, double now, double emptied) {
  const auto nominal = [&](std::int64_t k) {
    return spec.phase + static_cast<double>(k) * spec.refresh;
  };
  const auto stamp = [&](std::int64_t k) {
    return nominal(k) + (spec.jitter > 0 ? spec.jitter * (2 * noise.uniform(-1 - k) - 1) : 0);
  };
  auto last = static_cast<std::int64_t>(std::floor((now - spec.phase) / spec.refresh)) + 1;
  while (stamp(last) > now) --last;
  const EnergyBetween response = observed(energy, spec.rise);
  std::vector<RingSample> samples;
  for (std::int64_t k = last - spec.capacity + 1; k <= last; ++k) {
    if (stamp(k) <= emptied) continue;
    const double watts = mean_watts(response, nominal(k) - spec.lag, spec.window);
    samples.push_back({stamp(k), reading(watts, spec.gain_error, spec.noise_watts, noise, k)});
  }
  return samples;
}

std::uint64_t counter_at(const CounterSpec& spec, const EnergyBetween& energy, const Noise& noise,
                         double now, double origin, double initial_joules) {
  const auto edge = [&](std::int64_t k) {
    return spec.phase + static_cast<double>(k) * spec.refresh;
  };
  const auto visible = [&](std::int64_t k) {
    return edge(k) + spec.delay_min + (spec.delay_max - spec.delay_min) * noise.uniform(k);
  };
  auto last = static_cast<std::int64_t>(std::floor((now - spec.phase) / spec.refresh)) + 1;
  while (visible(last) > now) --last;
  const EnergyBetween counted = observed(energy, spec.rise);
  const double since =
      edge(last) >= origin ? counted(origin, edge(last)) : -counted(edge(last), origin);
  const double mj = std::max(0.0, initial_joules + since * (1 + spec.gain_error)) * 1e3;
  return static_cast<std::uint64_t>(std::floor(mj / spec.quantum_mj) * spec.quantum_mj);
}

PolledValue polled_at(const PolledSpec& spec, const EnergyBetween& energy, const Noise& noise,
                      double now) {
  const auto k = static_cast<std::int64_t>(std::floor((now - spec.phase) / spec.refresh));
  const double renewed = spec.phase + static_cast<double>(k) * spec.refresh;
  const double watts = mean_watts(energy, renewed - spec.lag, spec.window);
  return {reading(watts, spec.gain_error, spec.noise_watts, noise, k), renewed};
}

}  // namespace jouleprof::nvml_sim
