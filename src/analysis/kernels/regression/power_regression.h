// The power of each kernel signature from rows that mix them: linear regression.
#pragma once

#include <Eigen/Core>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/regression/power_rows.h"
#include "analysis/kernels/regression/row_errors.h"
#include "analysis/timeline/sensors/error_model.h"

namespace jouleprof::analysis {

// The Gaussian prior of a column's watts, and its bounds. Where idle power is known to 5 W, the
// solution keeps the prior's mean: rows of work would bias it where the model is wrong, as where
// power overshoots when work begins. Its sigma then adds to the variance of all other watts.
struct PowerPrior {
  double mean = 0;
  double sigma = 0;
  double lowest = 0;
  double highest = 0;
};

// What is known beforehand of the sum of the watts of some columns: a Gaussian.
struct KnownPower {
  std::vector<std::size_t> columns;  // indices into PowerSolution::watts
  double watts = 0;
  double sigma = 0;
};

struct PowerSolution {
  // Idle first, then the columns of the rows.
  Eigen::VectorXd watts;
  // Posterior covariance of `watts`; active bounds are ignored.
  Eigen::MatrixXd covariance;
  // Cluster-robust covariance, clusters of 1 s (Liang and Zeger 1986). It exceeds `covariance`
  // where the model's errors persist for a while.
  Eigen::MatrixXd robust;
  // By interval of the program's time (rows): the shift of `watts` if the power above idle in that
  // interval were wrong by 100 %.
  Eigen::MatrixXd influence;
  // The alternative estimate minus `watts`: with the other rows that solve_power() was given.
  Eigen::VectorXd alternative_shift;
  // Other solutions (other_solutions()), each minus `watts`: all other models together are one more
  // error of the watts. Empty: none was made.
  Eigen::MatrixXd spread;
  // Column k: the shift of `watts` if column k drew 1 W more in the program's own rows, but not in
  // isolated re-runs. Empty without rows of re-runs and known powers: nearly the identity then.
  Eigen::MatrixXd program_shift;
  // The shift of `watts` if all columns drew twice their watts there; empty with it.
  Eigen::VectorXd all_program_shift;
  std::array<RowErrors::Noise, 2> noise{};
  double counter_sigma = 0;  // watts: error of a counter's row over one update
  double sample_sigma = 0;   // watts: error of a sample's row
  double explained = 0;      // R^2 of all rows, weighted by their lengths
  std::size_t rows = 0;

  // The variance of `factor . watts`: the larger one of both covariances, and the spread.
  double variance(const Eigen::VectorXd& factor) const;
  // The maximum shift of `factor . watts` where the power above idle of each interval is wrong by
  // up to `ratio`, in either direction.
  double maximum_shift(const Eigen::VectorXd& factor, double ratio) const;
  // One sigma of that shift where the power of each interval is wrong by itself.
  double random_shift(const Eigen::VectorXd& factor, double ratio) const;
  // The length in seconds of the intervals of `rows`, which begin with the first row. `columns`:
  // idle's included.
  static double interval_of(const PowerRows& rows, std::size_t columns);
  // The shift of `factor . watts` for the 1 W of program_shift.
  double shift_by_program(const Eigen::VectorXd& factor, std::size_t column) const;
  // The shift of `factor . watts` if all columns drew twice their watts in the program's own rows,
  // or each of them alone did: at most.
  double shift_by_all_of_program(const Eigen::VectorXd& factor) const;

 private:
  Eigen::VectorXd moved_by(const Eigen::VectorXd& factor) const;
};

// Estimates the watts of row.watts = idle + sum of share x watts + error by generalised least
// squares (Aitken 1936) with the error model of row_errors.h, re-estimated in each of four rounds;
// with independent Gaussian priors (ridge regression, Hoerl and Kennard 1970) and with bounds.
// `priors`: idle's first, then one for each column. `others`: the same rows under another
// assumption on the sensors; may be null. `known`: in addition to the priors. Needs at least one
// row. Time: cubic in the columns; 2,000 take some five seconds.
PowerSolution solve_power(const PowerRows& rows, const std::vector<PowerPrior>& priors,
                          const PowerRows* others = nullptr,
                          std::span<const KnownPower> known = {});

// What it changes if idle power drifts: it differs by one value at all times, known beforehand to
// `held_sigma` watts, and by others from one eight seconds to the next, as much as the readings
// say.
struct DriftingIdle {
  Eigen::VectorXd shift;       // of the watts
  Eigen::MatrixXd covariance;  // of the watts, with that of the drift in it
  double watts = 0;            // the drift's sigma
};
DriftingIdle drifting_idle(const PowerSolution& base, const PowerRows& rows,
                           const std::vector<PowerPrior>& priors, double held_sigma,
                           std::span<const KnownPower> known = {});

// PowerSolution::spread: the differences of what other rows of the same readings say, each as
// likely as the others, with the errors that `base` has. Divided by the root of their number.
Eigen::MatrixXd other_solutions(const PowerSolution& base, const std::vector<PowerPrior>& priors,
                                std::span<const PowerRows> others,
                                std::span<const KnownPower> known = {});

// In isolated re-runs all kernels draw other power than in place, by one factor: caches are warmer
// and the board is cooler. The regression estimates the factor as one more column.
// The prior of the difference, in percent of power above idle.
inline constexpr PowerPrior kReplayScale{0, kErrors.rerun_percent, -50, 50};

// Where the SM clock changes in the program, all kernels' power may follow it: by how much of what
// SmClocks expects, in percent. At a power limit it follows little, because the limit lowers the
// clock where the work draws more: 28 to 56 in five recordings of JAX at its limit (H100, 28 Nov).
// The prior is chosen to hold all of it, and nothing, too.
inline constexpr PowerPrior kClockScale{50, 50, -50, 200};

// Sets `column` of each row to `part` of a hundredth of the row's modelled power above idle.
// `watts`: the last solution, idle first, then the columns. Replaces an earlier value.
void set_scale(PowerRows& rows, const std::function<double(const PowerRow&)>& part,
               std::uint32_t column, const Eigen::VectorXd& watts);

}  // namespace jouleprof::analysis
