// Watts of each kernel class from rows that mix them: Bayesian least squares within bounds.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "analysis/kernels/power_rows.h"

namespace jouleprof::analysis {

// What is known of a column's watts before any row is looked at, and where they may lie. Idle is
// bound to its mean where that is known to 5 W: rows of work can't correct it, for where the model
// is wrong (a board that overshoots as work begins) they pull at it most. Its sigma then widens all
// that follows from it.
struct PowerPrior {
  double mean = 0;
  double sigma = 0;
  double lowest = 0;
  double highest = 0;
};

struct PowerSolution {
  // Idle first, then the columns of the rows.
  Eigen::VectorXd watts;
  // Of `watts`, from the posterior; of those at a bound as if there were none.
  Eigen::MatrixXd covariance;
  // The same with the rows' errors as they were, however they hang together over a second. Larger
  // than `covariance` where the model is wrong in the same way for a while.
  Eigen::MatrixXd robust;
  // By stretch of time (rows), what the watts above would move by if all power above idle in it
  // were wrong by the whole.
  Eigen::MatrixXd pulls;
  // What `watts` would move by if the rows were the others that solve_power() was given.
  Eigen::VectorXd otherwise;
  double counter_sigma = 0;  // watts that a counter's row of one edge distance is off by
  double sample_sigma = 0;   // watts that a sample's row is off by
  double explained = 0;      // R^2 of all rows, weighted
  std::size_t rows = 0;

  // The variance of `factor . watts`: the larger of both.
  double variance(const Eigen::VectorXd& factor) const;
  // The most that `factor . watts` can move, of one watt in each: where the power above idle of
  // each stretch of time is off by up to `ratio`, in whatever direction.
  double sway(const Eigen::VectorXd& factor, double ratio) const;
};

// The most likely watts for
//   row.watts = idle + sum of share x watts + error,
// counters' and samples' errors each with a variance of their own, found from what is left, and
// each correlated with its neighbour's as what is left shows (stamps that jitter make neighbours
// err in opposite ways). A row that is off by more than three sigma counts less. `priors`: idle's
// first, then one for each column. `others`: the same rows by sensors that look at power a little
// differently; may be null. Needs at least one row.
PowerSolution solve_power(const PowerRows& rows, const std::vector<PowerPrior>& priors,
                          const PowerRows* others = nullptr);

}  // namespace jouleprof::analysis
