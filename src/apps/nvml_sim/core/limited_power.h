// The power that a board draws: the demand of its work, capped by its power limit.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "apps/nvml_sim/core/curve.h"

namespace jouleprof::nvml_sim {

// Thread-safe. Times are seconds since the scenario's start.
class LimitedPower {
 public:
  // `limit_watts` holds until the first set_limit.
  LimitedPower(Curve demand, double limit_watts);

  // Sets the limit from `t` on, but not before the last change. Earlier limits stay.
  void set_limit(double t, double limit_watts);

  double limit(double t) const;
  double demand(double t) const { return demand_.watts(t); }
  // min(demand, limit) at `t`.
  double watts(double t) const;
  // Its exact integral, with begin <= end.
  double joules(double begin, double end) const;

 private:
  double limit_locked(double t) const;
  double integrate(double begin, double end) const;             // over all limits
  double capped(double limit, double begin, double end) const;  // under one limit
  double since_start(double t) const;                           // from 0, with sums_

  const Curve demand_;
  mutable std::mutex mutex_;
  std::vector<std::pair<double, double>> limits_;  // from when, watts; the first from -infinity
  // Energy from 0 to each whole second, as far as computed. Without it, each read of a counter
  // after hours at the limit would integrate all of them.
  mutable std::vector<double> sums_{0};
};

}  // namespace jouleprof::nvml_sim
