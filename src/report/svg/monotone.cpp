#include "report/svg/monotone.h"

#include <cmath>
#include <cstddef>

namespace jouleprof::report {

std::vector<double> monotone_slopes(const std::vector<CurvePoint>& points) {
  const std::size_t n = points.size();
  std::vector<double> secants;
  for (std::size_t i = 0; i + 1 < n; ++i) {
    secants.push_back((points[i + 1].y - points[i].y) / (points[i + 1].x - points[i].x));
  }
  std::vector<double> slopes(n, 0);
  slopes.front() = secants.front();
  slopes.back() = secants.back();
  for (std::size_t i = 1; i + 1 < n; ++i) {
    if (secants[i - 1] * secants[i] > 0) slopes[i] = (secants[i - 1] + secants[i]) / 2;
  }
  for (std::size_t i = 0; i + 1 < n; ++i) {
    if (secants[i] == 0) {
      slopes[i] = slopes[i + 1] = 0;
      continue;
    }
    const double a = slopes[i] / secants[i];
    const double b = slopes[i + 1] / secants[i];
    const double length = std::hypot(a, b);
    if (length <= 3) continue;  // within the circle that keeps the cubic monotone
    slopes[i] = 3 * a / length * secants[i];
    slopes[i + 1] = 3 * b / length * secants[i];
  }
  return slopes;
}

}  // namespace jouleprof::report
