#include "analysis/sweep/mean_draws.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace jouleprof::analysis {
namespace {

// The quantile of Student's t for 97.5 %, by degrees of freedom; beyond the table, its last.
double student_t(std::size_t degrees) {
  constexpr std::array kQuantiles{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                  2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                  2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
  return kQuantiles[std::min(degrees, kQuantiles.size()) - 1];
}

SweepSample resampled(const SweepPoint& point, std::mt19937_64& random) {
  const std::size_t n = point.samples.size();
  std::uniform_int_distribution<std::size_t> any(0, n - 1);
  SweepSample mean;
  for (std::size_t i = 0; i < n; ++i) {
    const SweepSample& sample = point.samples[any(random)];
    mean.seconds += sample.seconds / static_cast<double>(n);
    mean.joules += sample.joules / static_cast<double>(n);
  }
  return mean;
}

}  // namespace

MeanDraws::MeanDraws(const Sweep& sweep) : sweep_(sweep), model_(BlockModel::fit(sweep)) {
  if (model_) {
    means_ = model_->means();
    return;
  }
  fewest_ = sweep.points.empty() ? 0 : sweep.points.front().samples.size();
  for (const auto& point : sweep.points) {
    means_.push_back({point.mean_seconds(), point.mean_joules(), {}});
    fewest_ = std::min(fewest_, point.samples.size());
  }
}

std::vector<SweepSample> MeanDraws::draw(std::mt19937_64& random) const {
  if (model_) return model_->draw(random);
  std::vector<SweepSample> means;
  for (const auto& point : sweep_.points) means.push_back(resampled(point, random));
  return means;
}

Interval MeanDraws::interval(std::vector<double> values, double center, double coverage) const {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
  };
  const Interval percentiles{at((1 - coverage) / 2), at((1 + coverage) / 2)};
  if (model_) return percentiles;
  // A percentile bootstrap of few samples is too narrow: by sqrt(n / (n - 1)) of the resampled
  // variance, and by the normal quantile in place of Student's (Efron and Tibshirani 1993).
  const auto n = static_cast<double>(fewest_);
  const double factor = std::sqrt(n / (n - 1)) * student_t(fewest_ - 1) / 1.96;
  return {center - factor * std::max(center - percentiles.low, 0.0),
          center + factor * std::max(percentiles.high - center, 0.0)};
}

}  // namespace jouleprof::analysis
