// Time and energy of a sweep whose runs were made in blocks.
#pragma once

#include <optional>
#include <random>
#include <vector>

#include "analysis/sweep/sweep.h"

namespace jouleprof::analysis {

// The two-way layout log y = setting + block + noise, by least squares, for time and energy
// together (Montgomery, Design and Analysis of Experiments, ch. 4). Drift from block to block, such
// as a warming board, cancels also where a setting is missing in some blocks. The noise has one
// covariance for all settings.
class BlockModel {
 public:
  // Absent where a sample has no block, or the residuals have fewer than four degrees of freedom.
  static std::optional<BlockModel> fit(const Sweep& sweep);

  // Of each point, in an average block.
  const std::vector<SweepSample>& means() const { return means_; }
  // Means that the data allow as well: a draw of the multivariate t distribution of the estimates.
  std::vector<SweepSample> draw(std::mt19937_64& random) const;

 private:
  BlockModel() = default;

  std::size_t degrees_ = 0;
  std::vector<SweepSample> means_;            // in seconds and joules
  std::vector<std::vector<double>> factor_;   // lower Cholesky factor of the settings' covariance
  double time_ = 0, slope_ = 0, energy_ = 0;  // and of the noise's: [time 0; slope energy]
};

}  // namespace jouleprof::analysis
