// Energy over time with a finer resolution than the samples: from overlapping means over windows,
// and the energy counter at its updates.
#pragma once

#include <vector>

namespace jouleprof::analysis {

// All times in seconds, energies in joules.
struct FitProblem {
  // The mean observed power over [begin, end] was `watts`, with standard error `sigma`.
  struct Mean {
    double begin, end, watts, sigma;
  };
  // The energy since the reference was `joules` at `at`, with standard error `sigma`. `seen`: not
  // corrected for the sensor's lag.
  struct Point {
    double at, joules, sigma;
    bool seen = false;
  };
  // Of the sensors' first-order lag; 0: none.
  double time_constant = 0;
  std::vector<double> knots;       // increasing, at least three
  std::vector<Mean> means;         // each within the knots
  std::vector<Point> points;       // each within the knots
  std::vector<double> usual_jump;  // per knot: plausible change of power there, watts; may be empty
  double floor_watts = 0;          // power is never below
  double noise_watts = 1;          // smaller changes of power are noise
  int rounds = 6;                  // of reweighting
};

// The energy at each knot, never decreasing; power is constant between knots.
//
// Sensor response: observed power is y with tau * dy/dt = P - y, tau being the time constant. The
// observed energy up to t is E(t) - tau * y(t): linear in E at the knots of the last 6 time
// constants; before them power is taken as constant.
//
// Regularised least squares over E at the knots. Rows are the means, the points, and the changes of
// power: a change D at a knot costs log(D^2 + noise^2), minimised by iteratively reweighted least
// squares (Chartrand and Yin 2008, p = 0). The penalty keeps steps sharp and smooths noise. The
// normal equations are banded (Cholesky): time is linear in the number of knots.
std::vector<double> fit_energy(const FitProblem& problem);

}  // namespace jouleprof::analysis
