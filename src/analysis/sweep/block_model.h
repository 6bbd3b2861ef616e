// Time and energy of a sweep's settings, and how uncertain they are.
#pragma once

#include <random>
#include <vector>

#include "analysis/sweep/sweep.h"

namespace jouleprof::analysis {

struct Interval {
  double low = 0;
  double high = 0;
};

// The two-way layout log y = setting + block + noise, by least squares, for time and energy
// together (Montgomery, Design and Analysis of Experiments, ch. 4). Drift from block to block, such
// as a warming board, cancels also where a setting is missing in some blocks. The noise has one
// covariance for all settings, so that two samples of each are enough to know it. Where samples
// have no block, or blocks leave too few degrees of freedom, the layout has settings alone.
class BlockModel {
 public:
  explicit BlockModel(const Sweep& sweep);

  // Of each point, in an average block.
  const std::vector<SweepSample>& means() const { return means_; }
  // False where no setting was measured twice: there are means alone.
  bool has_errors() const { return degrees_ > 0; }
  // Means that the data allow as well: a draw of the multivariate t distribution of the estimates.
  std::vector<SweepSample> draw(std::mt19937_64& random) const;

 private:
  bool fit(const Sweep& sweep, bool in_blocks, std::size_t fewest_degrees);

  std::size_t degrees_ = 0;
  std::vector<SweepSample> means_;            // in seconds and joules
  std::vector<std::vector<double>> factor_;   // lower Cholesky factor of the settings' covariance
  double time_ = 0, slope_ = 0, energy_ = 0;  // and of the noise's: [time 0; slope energy]
};

// The central interval of values that were computed from draws, at a coverage such as 0.95.
Interval interval_of(std::vector<double> values, double coverage = 0.95);

}  // namespace jouleprof::analysis
