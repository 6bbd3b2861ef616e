// A run as one figure.
#include "report/svg/svg_format.h"

#include "report/cells.h"
#include "report/headline_text.h"
#include "report/redaction.h"
#include "report/svg/run_figure.h"

namespace jouleprof::report {
namespace {

constexpr const char* kStyles =
    ".title{font-weight:bold;font-size:15px}.heading{font-weight:bold;font-size:14px}"
    ".soft{fill:#5b6470}.alert{fill:#a4262c;font-weight:bold}.energy{font-weight:bold;"
    "font-size:30px}.error{font-size:18px}.measured{font-size:13px;fill:#1b6e3c}"
    ".estimated,.simulated,.unavailable{font-size:13px;fill:#a4262c}.grid{stroke:#ddd}"
    ".edge{stroke:#5b6470;stroke-dasharray:4 3}.whisker{stroke:#1a1d21;stroke-width:1.6}";
constexpr const char* kHatch =
    "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" stroke=\"#fff\" "
    "stroke-opacity=\"0.55\" stroke-width=\"2.4\"/></pattern></defs>\n";
// Two pixels a step.
constexpr std::size_t kSteps = 420;

Result<void> write(const analysis::Run& run, const analysis::Part& part,
                   const FormatOptions& options, std::ostream& out) {
  const auto figure = run_svg(run, part, options);
  if (!figure) return forward_error(figure);
  out << *figure;
  return {};
}

}  // namespace

Result<std::string> run_svg(const analysis::Run& run, const analysis::Part& part,
                            const FormatOptions& options) {
  const auto& whole = run.profile(part);
  if (!whole) return tl::unexpected(whole.error());
  const model::Profile profile = options.redact ? redacted(*whole) : *whole;
  Drawing drawing(kStyles);
  drawing.markup(kHatch);
  double y = draw_headline(drawing, 16, profile, options.text.whole_machine);
  y = draw_balance(drawing, y + 14, profile);
  if (const auto span = run.span(part)) {
    const HostTime origin = run.recording().run.work_begin.value_or(span->begin);
    y = draw_timeline(drawing, y + 16, profile, power_tracks(run, part, origin, kSteps), origin);
  }
  std::string source = "jouleprof " + options.version;
  if (!options.text.recording_path.empty() && !options.redact) {
    source += " · " + options.text.recording_path;
  }
  drawing.text(kFigureMargin, y += 28, fit_width(source, kFigureInner, 12), "class=\"soft\"");
  const std::string command = command_text(profile.run);
  return drawing.document(kFigureWidth, y + 18,
                          fit(command.empty() ? "Energy report" : command, 200), 12);
}

extern const Format svg_format;
constinit const Format svg_format{.name = "svg",
                                  .extension = ".svg",
                                  .shows = "headline, balance and power over time as one figure",
                                  .write = write};

}  // namespace jouleprof::report
