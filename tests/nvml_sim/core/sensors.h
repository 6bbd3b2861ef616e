// The values that a driver's sensors show, as pure functions of the true energy.
//
// Times are seconds since the scenario's start. A value depends on its own number alone, so every
// process reads the same value, however often it reads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "nvml_sim/core/scenario.h"

namespace jouleprof::nvml_sim {

// The true joules between two times, the first not after the second.
using EnergyBetween = std::function<double(double begin, double end)>;

// The energy that a sensor observes whose response to the power is a first-order lag of time
// constant `rise`: the true energy less `rise` x the change of the observed power. 0: the true
// energy.
EnergyBetween observed(EnergyBetween energy, double rise);

// Noise that depends on the scenario's seed, the sensor and the value's number alone.
class Noise {
 public:
  // `stream`: one number for each sensor.
  Noise(std::uint64_t seed, std::uint64_t stream);
  double uniform(std::int64_t number) const;   // [0, 1)
  double gaussian(std::int64_t number) const;  // mean 0, standard deviation 1

 private:
  std::uint64_t bits(std::int64_t number, std::uint64_t salt) const;
  std::uint64_t state_;
};

struct RingSample {
  double stamp = 0;  // jitter included
  double watts = 0;  // observed mean over [t - lag - window, t - lag], t the stamp without jitter
};

// The content of the ring at `now`, oldest first: at most `capacity` samples, with stamps in
// (`emptied`, now].
std::vector<RingSample> ring_at(const RingSpec& spec, const EnergyBetween& energy,
                                const Noise& noise, double now, double emptied = -kForever);

// The counter at `now`, in millijoules: initial_joules and the energy observed from `origin` to the
// last visible update, rounded down to the quantum. An update before `origin` counts negative; the
// counter is never below 0.
std::uint64_t counter_at(const CounterSpec& spec, const EnergyBetween& energy, const Noise& noise,
                         double now, double origin, double initial_joules);

// A polled value at `now`.
struct PolledValue {
  double watts = 0;
  double renewed = 0;
};
PolledValue polled_at(const PolledSpec& spec, const EnergyBetween& energy, const Noise& noise,
                      double now);

}  // namespace jouleprof::nvml_sim
