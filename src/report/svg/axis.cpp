#include "report/svg/axis.h"

#include <algorithm>
#include <cmath>

namespace jouleprof::report {

Axis padded_axis(double low, double high, double from, double to) {
  const double pad = high > low ? 0.06 * (high - low) : std::max(1e-9, 0.05 * std::abs(high));
  return {low - pad, high + pad, from, to};
}

std::vector<double> ticks(double low, double high, int count) {
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> all;
  for (double at = std::ceil(low / step) * step; at <= high + step * 1e-9; at += step) {
    all.push_back(std::abs(at) < step * 1e-9 ? 0 : at);
  }
  return all;
}

}  // namespace jouleprof::report
