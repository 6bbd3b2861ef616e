// A timeline over simulated sensors.
#pragma once

#include <random>
#include <vector>

#include "analysis/timeline/simulated_sensors_test.h"
#include "analysis/timeline/timeline.h"

namespace jouleprof::analysis::simulated {

inline std::vector<model::CounterReading> counter_reads(const GpuSensors& gpu, const Truth& truth) {
  if (gpu.read_every < 2) return gpu.reads(truth, 0.1, truth.end());
  // Rare reads, with a second of dense ones at both ends.
  std::vector<double> times;
  for (double t = 0.1; t < 1.1; t += 0.04) times.push_back(t);
  for (double t = 1.1 + gpu.read_every; t < truth.end() - 1.2; t += gpu.read_every) {
    times.push_back(t);
  }
  for (double t = truth.end() - 1.1; t < truth.end(); t += 0.04) times.push_back(t);
  return gpu.reads(truth, times);
}

inline EnergyTimeline fused(const GpuSensors& gpu, const Truth& truth) {
  EnergyTimeline timeline({gpu.counter(), gpu.ring()});
  for (const auto& r : gpu.samples(truth, 0, truth.end())) timeline.append(r);
  for (const auto& r : counter_reads(gpu, truth)) timeline.append(r);
  return timeline;
}

// Random steps, noise, ramps and fast alternation.
inline Truth mixed(unsigned seed, double length) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  Truth truth;
  truth.hold(120, 1);
  while (truth.end() < length) {
    const double kind = uniform(random);
    if (kind < 0.3) {
      truth.hold(120 + 580 * uniform(random), 0.05 + uniform(random));
    } else if (kind < 0.6) {
      for (int i = 0; i < 20; ++i) {
        truth.hold(150 + 500 * uniform(random), 0.005 + 0.08 * uniform(random));
      }
    } else if (kind < 0.8) {
      for (int i = 0; i < 200; ++i) truth.hold(300 + i, 0.004);
    } else {
      for (int i = 0; i < 30; ++i) truth.hold(650, 0.03), truth.hold(120, 0.03);
    }
  }
  return truth;
}

}  // namespace jouleprof::analysis::simulated
