// The power that a board draws: the demand of its work, lowered by a locked clock and capped by its
// power limit.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "nvml_sim/core/curve.h"

namespace jouleprof::nvml_sim {

// Thread-safe. Times are seconds since the scenario's start.
class LimitedPower {
 public:
  // `limit_watts` holds until the first set_limit.
  LimitedPower(Curve demand, double limit_watts, double idle_watts = 0);

  // Sets the limit from `t` on, but not before the last change. Earlier limits stay.
  void set_limit(double t, double limit_watts);
  // Sets the share of the power above idle that a locked clock leaves, from 0 to 1.
  void set_share(double t, double share);

  double limit(double t) const { return setting(t).limit; }
  double share(double t) const { return setting(t).share; }
  // idle + share x (demand - idle), without the limit.
  double demand(double t) const;
  // min(demand, limit) at `t`.
  double watts(double t) const;
  // Its exact integral, with begin <= end.
  double joules(double begin, double end) const;

 private:
  struct Setting {
    double from = 0;
    double limit = 0;
    double share = 1;
  };

  Setting setting(double t) const;
  void change(double t, void (*apply)(Setting&, double), double value);
  double integrate(double begin, double end) const;             // over all settings
  double capped(double limit, double begin, double end) const;  // of the whole demand
  double since_start(double t) const;                           // from 0, with sums_

  const Curve demand_;
  const double first_limit_;
  std::atomic<bool> is_changed_ = false;
  mutable std::mutex mutex_;
  const double idle_;
  std::vector<Setting> settings_;  // the first from -infinity
  // Energy from 0 to each whole second, as far as computed. Without it, each read of a counter
  // after hours at the limit would integrate all of them.
  mutable std::vector<double> sums_{0};
};

}  // namespace jouleprof::nvml_sim
