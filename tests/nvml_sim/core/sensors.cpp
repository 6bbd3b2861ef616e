#include "nvml_sim/core/sensors.h"

#include <algorithm>
#include <array>
#include <cmath>
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

// The energy that such a sensor observes.
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

// From 0 to 1.
double uniform(std::uint64_t stream, std::int64_t number) {
  constexpr std::uint64_t kSeed = 1;
  const std::uint64_t state = mix(mix(kSeed) ^ stream);
  return unit(mix(mix(state ^ static_cast<std::uint64_t>(number)) + 1));
}

}  // namespace

std::vector<RingSample> ring_at(const RingSpec& spec, const EnergyBetween& energy, double now,
                                double emptied) {
  const auto stamp = [&](std::int64_t k) { return static_cast<double>(k) * spec.refresh; };
  auto last = static_cast<std::int64_t>(std::floor(now / spec.refresh)) + 1;
  while (stamp(last) > now) --last;
  const EnergyBetween response = observed(energy, spec.rise);
  std::vector<RingSample> samples;
  for (std::int64_t k = last - kRingCapacity + 1; k <= last; ++k) {
    if (stamp(k) <= emptied) continue;
    samples.push_back(
        {stamp(k), std::max(0.0, mean_watts(response, stamp(k) - spec.lag, spec.window))});
  }
  return samples;
}

std::uint64_t counter_at(double rise, const EnergyBetween& energy, std::uint64_t stream, double now,
                         double origin, double initial_joules) {
  constexpr double kRefresh = 0.1;
  constexpr double kPhase = 0.037;
  constexpr double kDelayMin = 0.0003, kDelayMax = 0.016;  // from an update until it is visible
  const auto edge = [&](std::int64_t k) { return kPhase + static_cast<double>(k) * kRefresh; };
  const auto visible = [&](std::int64_t k) {
    return edge(k) + kDelayMin + (kDelayMax - kDelayMin) * uniform(stream, k);
  };
  auto last = static_cast<std::int64_t>(std::floor((now - kPhase) / kRefresh)) + 1;
  while (visible(last) > now) --last;
  const EnergyBetween counted = observed(energy, rise);
  const double since =
      edge(last) >= origin ? counted(origin, edge(last)) : -counted(edge(last), origin);
  return static_cast<std::uint64_t>(std::max(0.0, initial_joules + since) * 1e3);
}

PolledValue polled_at(const PolledSpec& spec, const EnergyBetween& energy, double now) {
  const double renewed = std::floor(now / spec.refresh) * spec.refresh;
  return {std::max(0.0, mean_watts(energy, renewed, spec.window)), renewed};
}

}  // namespace jouleprof::nvml_sim
