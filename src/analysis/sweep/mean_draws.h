// The means of a sweep's points, and how uncertain they are.
#pragma once

#include <optional>
#include <random>
#include <vector>

#include "analysis/sweep/block_model.h"
#include "analysis/sweep/sweep.h"

namespace jouleprof::analysis {

struct Interval {
  double low = 0;
  double high = 0;
};

// Runs in blocks: by the block model. Else, where each point was measured at least twice: a
// bootstrap over the samples of each point (Efron 1979), widened for few samples. Else there are
// means alone. The sweep outlives it.
class MeanDraws {
 public:
  explicit MeanDraws(const Sweep& sweep);

  const std::vector<SweepSample>& means() const { return means_; }
  bool has_errors() const { return model_ || fewest_ > 1; }
  std::vector<SweepSample> draw(std::mt19937_64& random) const;
  // The central interval of `values`, which were computed from draws, at a coverage such as 0.95.
  // `center`: computed from the means.
  Interval interval(std::vector<double> values, double center, double coverage = 0.95) const;

 private:
  const Sweep& sweep_;
  std::optional<BlockModel> model_;
  std::vector<SweepSample> means_;
  std::size_t fewest_ = 0;  // samples of a point
};

}  // namespace jouleprof::analysis
