// What a board draws: what its work demands, held to the power limit in force.
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
  LimitedPower(CurvePtr demand, double limit_watts);

  // The limit from `t` on. Earlier times keep theirs; a `t` before the last change counts as that.
  void set_limit(double t, double limit_watts);

  double limit(double t) const;
  double demand(double t) const { return demand_->watts(t); }
  // min(demand, limit) at `t`.
  double watts(double t) const;
  // Its exact integral, with begin <= end.
  double joules(double begin, double end) const;

 private:
  double limit_locked(double t) const;
  double integrate(double begin, double end) const;             // piece by piece
  double capped(double limit, double begin, double end) const;  // under one limit
  double since_start(double t) const;                           // from 0, through sums_

  const CurvePtr demand_;
  mutable std::mutex mutex_;
  std::vector<std::pair<double, double>> limits_;  // from when, watts; the first from -infinity
  // Energy from 0 to each whole second, as far as it was asked for: without it, a counter read
  // after hours at the limit would walk through all of them again.
  mutable std::vector<double> sums_{0};
};

}  // namespace jouleprof::nvml_sim
