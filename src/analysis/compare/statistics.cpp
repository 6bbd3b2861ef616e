#include "analysis/compare/statistics.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>

namespace jouleprof::analysis {
namespace {

constexpr double kTail = 0.025;  // of each side of a 95 % interval
constexpr double kNormal = std::numeric_limits<double>::infinity();  // degrees of freedom

double quantile(double degrees, double tail = kTail) {
  if (!std::isfinite(degrees)) {
    return boost::math::quantile(boost::math::complement(boost::math::normal{}, tail));
  }
  return boost::math::quantile(boost::math::complement(boost::math::students_t{degrees}, tail));
}

double tail_beyond(double t, double degrees) {
  if (!std::isfinite(degrees)) {
    return boost::math::cdf(boost::math::complement(boost::math::normal{}, t));
  }
  return boost::math::cdf(boost::math::complement(boost::math::students_t{degrees}, t));
}

// Both sides of a difference, in standard errors.
double p_beyond(double distance, double error, double degrees) {
  if (error <= 0) return distance > 0 ? 0 : 1;
  return 2 * tail_beyond(distance / error, degrees);
}

// Half an interval that leaves `tail` on each side. Each part has its own quantile: the spread of
// few runs Student's t, what is known of the sensors the normal one.
double half_at(const Estimate& e, double tail) {
  const double normal = quantile(kNormal, tail);
  return std::hypot(std::max(quantile(e.degrees, tail) * e.spread, normal * e.noise),
                    normal * e.calibration);
}

double count_of(std::span<const double> values) { return static_cast<double>(values.size()); }

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / count_of(values);
}

double squares_of(std::span<const double> values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

}  // namespace

Estimate estimate_of_pairs(std::span<const double> differences) {
  Estimate estimate{mean_of(differences), {}};
  const double n = count_of(differences);
  if (differences.size() < 2) return estimate;
  estimate.degrees = n - 1;
  estimate.spread = std::sqrt(squares_of(differences) / (n - 1) / n);
  estimate.half = half_at(estimate, kTail);
  return estimate;
}

Estimate estimate_of_units(std::span<const double> before, std::span<const double> after,
                           double fewer_runs) {
  Estimate estimate{mean_of(after) - mean_of(before), {}};
  const double n = count_of(before);
  const double m = count_of(after);
  if (n + m < 3) return estimate;
  const double squares[] = {squares_of(before), squares_of(after)};
  estimate.degrees = n + m - 2;
  estimate.spread =
      std::sqrt((squares[0] + squares[1]) / estimate.degrees * (1 / n + 1 / m) + fewer_runs);
  estimate.half = half_at(estimate, kTail);
  if (before.size() < 2 || after.size() < 2) return estimate;
  const double a = squares[0] / (n - 1) / n;
  const double b = squares[1] / (m - 1) / m;
  // The degrees of freedom of Welch and Satterthwaite; without any spread they are not defined.
  const double weight = a * a / (n - 1) + b * b / (m - 1);
  if (!(weight > 0)) return estimate;
  Estimate welch = estimate;
  welch.degrees = (a + b) * (a + b) / weight;
  welch.spread = std::sqrt(a + b);
  welch.half = half_at(welch, kTail);
  return *welch.half > *estimate.half ? welch : estimate;
}

Estimate estimate_with_spread(std::span<const double> before, std::span<const double> after,
                              double spread) {
  Estimate estimate{mean_of(after) - mean_of(before), {}};
  estimate.spread = spread * std::sqrt(1 / count_of(before) + 1 / count_of(after));
  estimate.half = half_at(estimate, kTail);
  return estimate;
}

void add_sensors(Estimate& estimate, double noise, double calibration) {
  if (!estimate.half) return;
  estimate.noise = noise / quantile(kNormal);
  estimate.calibration = calibration / quantile(kNormal);
  estimate.half = half_at(estimate, kTail);
}

std::optional<std::size_t> units_to_decide(const Estimate& estimate, std::size_t units, bool paired,
                                           double same_within) {
  constexpr std::size_t kMost = 1000;
  if (!estimate.half || units == 0) return std::nullopt;
  const double distance = std::abs(estimate.mean);
  for (std::size_t n = std::max<std::size_t>(units + 1, 2); n <= kMost; ++n) {
    Estimate of_n = estimate;
    const double shrinks = std::sqrt(static_cast<double>(units) / static_cast<double>(n));
    of_n.spread *= shrinks;
    of_n.noise *= shrinks;
    if (std::isfinite(of_n.degrees)) of_n.degrees = static_cast<double>((paired ? 1 : 2) * (n - 1));
    const double half = half_at(of_n, kTail);
    if (half < distance || distance + half <= same_within) return n;
  }
  return std::nullopt;
}

double p_value(const Estimate& estimate) {
  if (!estimate.half) return 1;
  const double distance = std::abs(estimate.mean);
  if (estimate.calibration <= 0) {
    return std::max(p_beyond(distance, estimate.spread, estimate.degrees),
                    p_beyond(distance, estimate.noise, kNormal));
  }
  // The tail whose interval ends at zero, by bisection of its logarithm.
  constexpr double kLeast = 1e-18;
  constexpr int kSteps = 50;
  double low = std::log(kLeast);
  double high = std::log(0.5);
  for (int i = 0; i < kSteps; ++i) {
    const double middle = (low + high) / 2;
    (half_at(estimate, std::exp(middle)) > distance ? low : high) = middle;
  }
  return 2 * std::exp((low + high) / 2);
}

std::vector<double> holm_adjusted(std::vector<double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  double least = 0;
  std::size_t left = p.size();
  for (const std::size_t i : order) {
    least = std::max(least, std::min(1.0, p[i] * static_cast<double>(left--)));
    p[i] = least;
  }
  return p;
}

}  // namespace jouleprof::analysis
