#include "analysis/levels/level_result.h"

#include <algorithm>
#include <cmath>

namespace jouleprof::analysis {

std::optional<ObservedLevel> join(const std::vector<ObservedLevel>& observed) {
  if (observed.empty()) return std::nullopt;
  double weight = 0;
  double mean = 0;
  for (const auto& o : observed) {
    const double w = 1 / std::max(o.error.watts() * o.error.watts(), 1e-12);
    weight += w;
    mean += w * o.power.watts();
  }
  mean /= weight;
  double error = std::sqrt(1 / weight);
  for (const auto& o : observed) {
    const double apart = std::abs(o.power.watts() - mean);
    if (apart > o.error.watts()) error = std::max(error, apart);
  }
  return ObservedLevel{Power::watts(mean), Power::watts(error)};
}

}  // namespace jouleprof::analysis
