// The values that a driver's sensors show, as pure functions of the true energy.
//
// Times are seconds since the scenario's start. A value depends on its own number alone, so every
// process reads the same value, however often it reads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "nvml_sim/core/curve.h"

namespace jouleprof::nvml_sim {

// The true joules between two times, the first not after the second.
using EnergyBetween = std::function<double(double begin, double end)>;

// The ring, of the last kRingCapacity samples: each is the mean over `window`, `lag` before its
// stamp, of what a sensor observes whose response to the power is a first-order lag of time
// constant `rise`. The counter has the same response.
inline constexpr int kRingCapacity = 120;
struct RingSpec {
  double refresh = 0.02;
  double window = 0.025;
  double lag = 0;
  double rise = 0;
};
struct RingSample {
  double stamp = 0;
  double watts = 0;
};

// The content of the ring at `now`, oldest first: with stamps in (`emptied`, now].
std::vector<RingSample> ring_at(const RingSpec& spec, const EnergyBetween& energy, double now,
                                double emptied = -kForever);

// The counter at `now`, in millijoules: `initial_joules` and the energy observed from `origin` to
// the last visible update. An update before `origin` counts negative; the counter is never below 0.
// `stream`: a number of each counter's own, which decides how late each update becomes visible.
std::uint64_t counter_at(double rise, const EnergyBetween& energy, std::uint64_t stream, double now,
                         double origin, double initial_joules);

// A polled value at `now`: the mean over `window` before its last renewal.
struct PolledSpec {
  double refresh = 0.1;
  double window = 0.025;
};
struct PolledValue {
  double watts = 0;
  double renewed = 0;
};
PolledValue polled_at(const PolledSpec& spec, const EnergyBetween& energy, double now);

}  // namespace jouleprof::nvml_sim
