// The power of each state of short windows, by regression.
#pragma once

#include <Eigen/Core>
#include <optional>
#include <span>
#include <vector>

#include "analysis/kernels/regression/power_regression.h"
#include "analysis/repeated/window_states.h"
#include "analysis/timeline/sensors/observed_power.h"
#include "analysis/timeline/timeline.h"

namespace jouleprof::analysis {

struct StatePowers {
  PowerSolution solution;  // `watts`: a base, then what each entry of the states adds to it
  // What is added to these watts if power next to windows is that elsewhere.
  Eigen::VectorXd near_shift;
};

// Of the standard deviations 0.03 to 3 times the mean power, by which power next to windows may
// differ from that elsewhere outside of them, the one with the greatest Bayesian evidence is the
// prior's (MacKay 1992). `time_constant`: of the sensors; it is fitted near that value, unless
// power drifts by 2 % and more (`drift`, relative standard deviation). Absent with fewer than 100
// observations.
std::optional<StatePowers> state_powers(const WindowStates& states,
                                        std::span<const ObservedPower> observed,
                                        double time_constant, double drift);

// The joules of times in each entry, with the watts of state_powers().
double modelled_joules(const WindowStates& states, const std::vector<double>& times,
                       const Eigen::VectorXd& watts);

// How the power of all states changes over a recording, as with temperature and clocks.

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
