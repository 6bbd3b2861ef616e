// Contexts on a device: when one exists, and the power that it causes without work.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "nvml_sim/core/curve.h"
#include "nvml_sim/core/tree_sampler.h"

namespace jouleprof::nvml_sim {

// Begin and end in seconds since the scenario's start; disjoint and in order.
using Intervals = std::vector<std::pair<double, double>>;

// The union of intervals in any order.
Intervals united(Intervals all);

// A process that holds a context from `begin` to `end`; with `tree`: while the tree has a process.
struct ContextHolder {
  double begin = -kForever;
  double end = kForever;
  std::shared_ptr<const TreeSampler> tree;
};

// What contexts add to the idle power: `held_watts` while one exists; from the end of the last one
// on `after_watts`, which decays exponentially with the time constant `decay`.
struct ContextPower {
  double held_watts = 0;
  double after_watts = 0;
  double decay = 3;
};

// Thread-safe.
class Contexts {
 public:
  Contexts(std::vector<ContextHolder> holders, const ContextPower& power)
      : holders_(std::move(holders)), power_(power) {}

  bool exist(double t) const;

 private:
  friend Curve curve_of(std::shared_ptr<const Contexts> contexts);

  // The intervals that began by `t`, and of holders without a tree the later ones.
  Intervals until(double t) const;
  double watts_near(double t, double inside) const;
  double joules(double begin, double end) const;
  double next_break(double t) const;

  std::vector<ContextHolder> holders_;
  ContextPower power_;
};

Curve curve_of(std::shared_ptr<const Contexts> contexts);

}  // namespace jouleprof::nvml_sim
