// Figures: of a run, of a sweep, as a picture, and what they are drawn with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/run.h"
#include "base/result.h"
#include "model/profile.h"
#include "model/sweep.h"
#include "report/figures.h"
#include "report/format/format.h"
#include "report/results/recommendation.h"

namespace jouleprof::report {

// An SVG document in the making, without scripts or references.
// Places are in pixels, from the top left. `attributes` is markup that the caller wrote, such as
// "class=\"grid\""; every other text may be anything, and becomes text.
class Drawing {
 public:
  // `styles`: CSS rules for the classes that the figure uses.
  explicit Drawing(std::string styles) : styles_(std::move(styles)) {}

  void text(double x, double y, std::string_view text, std::string_view attributes = {});
  void line(double x1, double y1, double x2, double y2, std::string_view attributes);
  // `title`: what a viewer shows when it is pointed at; empty: nothing.
  void rect(double x, double y, double width, double height, std::string_view attributes,
            std::string_view title = {});
  void circle(double x, double y, double radius, std::string_view attributes);
  void path(std::string_view places, std::string_view attributes);
  // Markup as it is.
  void markup(std::string_view text) { body_ += text; }

  // `title`: of the whole, for people who hear it.
  std::string document(double width, double height, std::string_view title,
                       double font_size = 11) const;

 private:
  std::string styles_;
  std::string body_;
};

// `name="value"` with a blank before it.
std::string attribute(std::string_view name, std::string_view value);

// About the width of text in a usual sans-serif font.
double text_width(std::string_view text, double font_size);
// At most about `width` wide; a cut is shown by "...".
std::string fit_width(std::string_view text, double width, double font_size);

// --- A scale of a figure, and its round numbers ---

// Maps values onto places of a drawing; `to` may be less than `from`, as upwards in an SVG.
struct Axis {
  double low = 0;
  double high = 1;
  double from = 0;
  double to = 1;

  double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

// From about the least to about the greatest, with a margin; of one value, a range around it.
Axis padded_axis(double low, double high, double from, double to);

// At most `count` + 1 multiples of 1, 2 or 5 times a power of ten from `low` to `high`.
std::vector<double> ticks(double low, double high, int count = 4);

// A run as one figure: headline, balance and power over time.
// An SVG document without scripts or references. Errors: as Run::profile().
Result<std::string> run_svg(const analysis::Run& run, const analysis::Part& part,
                            const FormatOptions& options);

// --- The parts of a run's figure: headline, balance, power over time ---

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

// --- A smooth curve through points that neither overshoots nor adds an extremum ---

struct CurvePoint {
  double x = 0;
  double y = 0;
};

// The slopes at the points of a piecewise cubic Hermite curve that is monotone wherever its points
// are (Fritsch and Carlson 1980). `points`: at least two, with ascending x.
std::vector<double> monotone_slopes(const std::vector<CurvePoint>& points);

// --- A picture of an SVG document ---

// Errors: unavailable where librsvg-2 or cairo is not installed.
Result<void> check_png();

// The PNG file of `svg`, `scale` pixels for each of its own. It is drawn by librsvg-2 and cairo,
// which are loaded at the first call. Errors: as check_png(); internal with their words.
Result<std::string> png_of_svg(const std::string& svg, double scale = 2);

}  // namespace jouleprof::report
