// How the power of all states changes over a recording, as with temperature and clocks.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "analysis/repeated/window_states.h"
#include "analysis/timeline/timeline.h"

namespace jouleprof::analysis {

// Observed over modelled energy of each second, interpolated between the seconds' middles.
class PowerDrift {
 public:
  PowerDrift() = default;  // none
  // `watts`: of state_powers().
  PowerDrift(const WindowStates& states, const Eigen::VectorXd& watts, EnergyTimeline& timeline);

  // 1: no drift. `t`: in seconds of the states' time.
  double ratio(double t) const;
  // The standard deviation of the ratios.
  double variation() const;

 private:
  double begin_ = 0;
  std::vector<double> ratios_;
};

}  // namespace jouleprof::analysis
