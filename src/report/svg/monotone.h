// A smooth curve through points that neither overshoots nor adds an extremum.
#pragma once

#include <vector>

namespace jouleprof::report {

struct CurvePoint {
  double x = 0;
  double y = 0;
};

// The slopes at the points of a piecewise cubic Hermite curve that is monotone wherever its points
// are (Fritsch and Carlson 1980). `points`: at least two, with ascending x.
std::vector<double> monotone_slopes(const std::vector<CurvePoint>& points);

}  // namespace jouleprof::report
