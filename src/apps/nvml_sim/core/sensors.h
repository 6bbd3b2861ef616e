// What a driver's sensors say at a time, as pure functions of the true energy.
//
// Times are seconds since the scenario's start. Every value depends on its own number alone, so
// whoever asks, in whichever process and however often, sees the same.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "apps/nvml_sim/core/scenario.h"

namespace jouleprof::nvml_sim {

// The true joules between two times, the first not after the second.
using EnergyBetween = std::function<double(double begin, double end)>;

// The energy as a sensor sees it that follows the power with a first-order lag of this time
// constant: the true energy less `rise` x the change of what it shows. 0: the true energy.
EnergyBetween as_seen(EnergyBetween energy, double rise);

// Noise that depends on nothing but the scenario's seed, the sensor and the value's number.
class Noise {
 public:
  // `stream` sets one sensor's noise apart from another's.
  Noise(std::uint64_t seed, std::uint64_t stream);
  double uniform(std::int64_t number) const;   // [0, 1)
  double gaussian(std::int64_t number) const;  // mean 0, standard deviation 1

 private:
  std::uint64_t bits(std::int64_t number, std::uint64_t salt) const;
  std::uint64_t state_;
};

struct RingSample {
  double stamp = 0;  // jitter included
  double watts = 0;  // the mean seen over [t - lag - window, t - lag], t the stamp without jitter
};

// What the ring holds at `now`, oldest first: at most `capacity` samples, with stamps in
// (`emptied`, now].
std::vector<RingSample> ring_at(const RingSpec& spec, const EnergyBetween& energy,
                                const Noise& noise, double now, double emptied = -kForever);

// What the counter shows at `now`, in millijoules: initial_joules and the energy seen from `origin`
// to the last edge whose update can be seen, rounded down to the quantum. An edge before `origin`
// counts backwards, and never below 0.
std::uint64_t counter_at(const CounterSpec& spec, const EnergyBetween& energy, const Noise& noise,
                         double now, double origin, double initial_joules);

// What a polled value shows at `now`, in watts, and when it was renewed.
struct PolledValue {
  double watts = 0;
  double renewed = 0;
};
PolledValue polled_at(const PolledSpec& spec, const EnergyBetween& energy, const Noise& noise,
                      double now);

}  // namespace jouleprof::nvml_sim
