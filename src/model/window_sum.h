// The energy of several windows of one domain.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <numbers>
#include <optional>
#include <string_view>
#include <vector>

#include "model/profile.h"

namespace jouleprof::model {

// The reason of a WindowEnergy without a window: no figure is missing.
inline constexpr std::string_view kNoWindowMeasures = "no window of this name measures this device";

// The gain error's part of a measurement's interval, in joules: gain^2 = error^2 - repeatability^2.
inline double gain_joules(const Measurement& m) {
  const double repeatability = m.repeatability.joules();
  const double error = m.error.joules();
  return std::sqrt(std::max(error * error - repeatability * repeatability, 0.0));
}

// The gain's part of the interval, without that of the offset, in parts of the energy.
inline double gain_ratio(const Measurement& m) {
  if (m.energy <= Energy{}) return 0;
  const double all = gain_joules(m);
  const double offset = std::min(m.offset.joules(), all);
  return std::sqrt(all * all - offset * offset) / m.energy.joules();
}

// The part `share` of a measurement.
inline Measurement part_of(Measurement m, double share) {
  m.energy = Energy::joules(m.energy.joules() * share);
  m.repeatability = Energy::joules(m.repeatability.joules() * share);
  m.error = Energy::joules(m.error.joules() * share);
  m.offset = Energy::joules(m.offset.joules() * share);
  return m;
}

// Where the ends of a stretch lie in the cycle of its sensor, in turns of 0 to 1.
struct EndTurns {
  double begin = 0;
  double end = 0;
};

// Adds up stretches that one timeline measured. Of the repeatability of each, `alike` is how late
// and how blurred its sensor shows all changes of power: it adds linearly. The rest lies at its
// ends and in its own samples, and is another draw for each that lies apart: it adds in quadrature.
// Ends that come at the same turns of the sensor's cycle err alike: what their vector sum exceeds
// that of random turns by adds linearly (Rayleigh 1880). Stretches that overlap err alike: they
// belong into different layers, and layers add linearly. The sensor's gain error is the same factor
// in all: that part of `error` adds linearly.
//   repeatability = common + sqrt((sum of alike)^2 + L^2)
//   L = sum over layers of sqrt(S + max(V - 3 S, 0))
//   S = sum of r^2, r^2 = repeatability^2 - alike^2 of a stretch
//   V = |sum of r x exp(2 pi i turn)|^2, mean of both ends
//   error = sqrt(repeatability^2 + (sum of gain)^2)
// Windows with short pauses between them err against each other at the edges of the pauses, and are
// to be added as one stretch that leaves out the pauses: analysis/windows/window_chains.h.
// Stretches so short that a sensor sees only their surroundings err alike as well (add_alike()).
class WindowSum {
 public:
  void add(const Measurement& m, std::size_t layer = 0,
           const std::optional<EndTurns>& turns = std::nullopt, Energy alike = {}) {
    if (layer >= layers_.size()) layers_.resize(layer + 1);
    Layer& of = layers_[layer];
    const double all = m.repeatability.joules();
    const double shared = std::clamp(alike.joules(), 0.0, all);
    const double repeatability = std::sqrt(all * all - shared * shared);
    alike_ += shared;
    of.squares += repeatability * repeatability;
    if (turns) {
      of.begins += std::polar(repeatability, 2 * std::numbers::pi * turns->begin);
      of.ends += std::polar(repeatability, 2 * std::numbers::pi * turns->end);
    }
    add_energy(m);
  }
  void add_alike(const Measurement& m) {
    common_ += m.repeatability.joules();
    add_energy(m);
  }
  // Takes `part` out of the stretches that were or will be added. Half of the 95 % interval of its
  // energy is `error`, which all such parts have alike.
  void leave_out(const Measurement& part, Energy error) {
    common_ += error.joules();
    gain_ -= gain_joules(part);
    Measurement negative = part;
    negative.energy = Energy{} - part.energy;
    negative.offset = Energy{} - part.offset;
    if (!left_out_) {
      left_out_ = negative;
    } else {
      add_to(*left_out_, negative);
    }
  }

  std::size_t count() const { return count_; }
  // Absent when nothing was added. Sensor and method are the first stretch's.
  std::optional<Measurement> sum() const {
    if (!sum_) return std::nullopt;
    double layers = 0;
    for (const Layer& layer : layers_) {
      const double alike = (std::norm(layer.begins) + std::norm(layer.ends)) / 2;
      layers += std::sqrt(layer.squares + std::max(alike - kByChance * layer.squares, 0.0));
    }
    const double repeatability = common_ + std::hypot(alike_, layers);
    Measurement m = *sum_;
    if (left_out_) add_to(m, *left_out_);
    m.repeatability = Energy::joules(repeatability);
    m.error = Energy::joules(std::hypot(repeatability, std::max(gain_, 0.0)));
    return m;
  }

 private:
  void add_energy(const Measurement& m) {
    gain_ += gain_joules(m);
    if (!sum_) {
      sum_ = m;
    } else {
      add_to(*sum_, m);
    }
    ++count_;
  }
  static void add_to(Measurement& sum, const Measurement& m) {
    sum.shift = shift_of_sum(sum, m);
    sum.energy += m.energy;
    sum.offset += m.offset;
    sum.provenance = combine(sum.provenance, m.provenance);
  }

  // Random turns exceed it once in 20 times: the square is exponentially distributed.
  static constexpr double kByChance = 3;
  struct Layer {
    double squares = 0;  // of the repeatabilities, J^2
    std::complex<double> begins, ends;
  };

  std::optional<Measurement> sum_;
  std::optional<Measurement> left_out_;  // negative
  std::size_t count_ = 0;
  std::vector<Layer> layers_;
  double common_ = 0;  // J
  double alike_ = 0;   // J
  double gain_ = 0;    // J
};

// --- What one of several windows took on average ---

inline Energy mean_of(Energy sum, std::size_t count) {
  return Energy::microjoules(
      std::llround(static_cast<long double>(sum.microjoules()) / static_cast<long double>(count)));
}

// The interval is that of the mean, not of each window. `count` is at least 1.
inline Measurement mean_of(const Measurement& sum, std::size_t count) {
  Measurement mean = sum;
  mean.energy = mean_of(sum.energy, count);
  mean.error = mean_of(sum.error, count);
  mean.repeatability = mean_of(sum.repeatability, count);
  mean.offset = mean_of(sum.offset, count);
  return mean;
}

// The sum of the energies of single windows; `e` has an energy.
inline const Measurement& singles_of(const WindowEnergy& e) {
  return e.singles ? *e.singles : *e.energy;
}

// The energy of one window on average; absent without any.
inline std::optional<Measurement> mean_of(const WindowEnergy& e) {
  if (!e.energy || e.count == 0) return std::nullopt;
  return mean_of(singles_of(e), e.count);
}

// Windows of the group that measure the device and have no energy of it.
inline std::size_t lacking_in(const WindowGroup& group, const WindowEnergy& e) {
  return (e.measuring > 0 ? e.measuring : group.count) - e.count;
}

// Whether monitors that not all have the device lack windows of it. A sum over devices then has
// more of other monitors' windows than the group, and no mean.
inline bool lacks_monitors(const WindowEnergy& e) { return e.measuring > e.count; }

// Whether every window of the group that measures the device has an energy. Others need none: those
// of monitors of other devices. A sum that lacks windows is no sum of the group.
inline bool is_whole(const WindowGroup& group, const WindowEnergy& e) {
  return e.count > 0 && (e.count == group.count || e.reason.empty());
}

}  // namespace jouleprof::model
