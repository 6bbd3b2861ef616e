// A sweep as a figure.
#pragma once

#include <string>
#include <vector>

#include "model/sweep.h"
#include "report/results/recommendation.h"

namespace jouleprof::report {

// An SVG document without scripts or references: one panel each for energy, time, throughput and
// mean power against the setting, and for clock, temperature and utilisation where `runs` have them
// (of our own sweep; empty: the sweep's samples alone). Every measurement is a point; the curve is
// a monotone interpolation of the means; the recommended setting is marked.
std::string sweep_svg(const AdvisedSweep& sweep, const std::vector<model::SweepRun>& runs);

// A smooth curve through points that neither overshoots nor adds an extremum.

struct CurvePoint {
  double x = 0;
  double y = 0;
};

// The slopes at the points of a piecewise cubic Hermite curve that is monotone wherever its points
// are (Fritsch and Carlson 1980). `points`: at least two, with ascending x.
std::vector<double> monotone_slopes(const std::vector<CurvePoint>& points);

}  // namespace jouleprof::report
