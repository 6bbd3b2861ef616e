// Power at a finer grain than one sample: overlapping means over windows joined with what an energy
// counter said at its edges.
#pragma once

#include <vector>

namespace jouleprof::analysis {

// All times in seconds, energies in joules.
struct FitProblem {
  // The mean power over [begin, end], as it is seen, was `watts`, give or take `sigma`.
  struct Mean {
    double begin, end, watts, sigma;
  };
  // The energy since the reference was `joules` at `at`, give or take `sigma`. `seen`: as it is
  // seen.
  struct Point {
    double at, joules, sigma;
    bool seen = false;
  };
  // Power is seen through a first-order lag of this time constant; 0: as it is.
  double rise = 0;
  std::vector<double> knots;  // increasing, at least three
  std::vector<Mean> means;    // each within the knots
  std::vector<Point> points;  // each within the knots
  std::vector<double>
      usual_jump;          // per knot: watts that power may well change by there (may be empty)
  double floor_watts = 0;  // power is never below
  double noise_watts = 1;  // changes of power of this size mean nothing
  int rounds = 6;          // of reweighting
};

// The energy at each knot, never decreasing, with power constant between knots.
//
// What is seen of power P is y with rise * dy/dt = P - y, so that the energy seen up to t is E(t) -
// rise * y(t): linear in E at the knots of the last 6 time constants, before which power is taken
// as constant.
//
// Least squares over E at the knots. Each mean and each point is a row; a third set of rows says
// that power rarely changes: the change D at a knot costs log(D^2 + noise^2), found by iteratively
// reweighted least squares. So a step stays a step and is placed inside a sample from what the
// neighbours say of the levels on both sides, while noise is smoothed. The matrix is banded: the
// cost is linear in the number of knots.
std::vector<double> fit_energy(const FitProblem& problem);

}  // namespace jouleprof::analysis
