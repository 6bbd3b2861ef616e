// A run as one figure: headline, balance and power over time.
#pragma once

#include <string>
#include <vector>

#include "analysis/run.h"
#include "model/profile.h"
#include "report/figures.h"
#include "report/format/format.h"
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

}  // namespace jouleprof::report
