// A run as one figure: headline, balance and power over time.
#pragma once

#include <string>
#include <vector>

#include "analysis/run.h"
#include "base/result.h"
#include "model/profile.h"
#include "model/sweep.h"
#include "report/figures.h"
#include "report/format/format.h"
#include "report/results/recommendation.h"
#include "report/svg/drawing.h"

namespace jouleprof::report {

// An SVG document without scripts or references. Errors: as Run::profile().
Result<std::string> run_svg(const analysis::Run& run, const analysis::Part& part,
                            const FormatOptions& options);

// The parts of a run's figure: headline, balance, power over time.

inline constexpr double kFigureWidth = 960;
inline constexpr double kFigureMargin = 24;
inline constexpr double kFigureInner = kFigureWidth - 2 * kFigureMargin;

// Each draws from `y` downwards, and returns where the next part begins.
//
// Energy with its interval and provenance, duration and power, what was measured.
double draw_headline(Drawing& drawing, double y, const model::Profile& profile,
                     bool whole_machine = false);
// One bar for each device that no other contains. A part of a bar has the attributes data-device,
// data-part and data-joules, the line of a bar's 95 % interval data-low-joules and
// data-high-joules.
double draw_balance(Drawing& drawing, double y, const model::Profile& profile);
// One chart for each such device, with the domains within it. `origin`: the zero of its times.
double draw_timeline(Drawing& drawing, double y, const model::Profile& profile,
                     const std::vector<PowerTrack>& tracks, HostTime origin);

// A sweep as a figure.

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

// A picture of an SVG document.

// Errors: unavailable where librsvg-2 or cairo is not installed.
Result<void> check_png();

// The PNG file of `svg`, `scale` pixels for each of its own. It is drawn by librsvg-2 and cairo,
// which are loaded at the first call. Errors: as check_png(); internal with their words.
Result<std::string> png_of_svg(const std::string& svg, double scale = 2);

}  // namespace jouleprof::report
