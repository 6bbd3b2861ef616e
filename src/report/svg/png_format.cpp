// The figure of a run as a picture.
#include "report/svg/png.h"
#include "report/svg/svg_format.h"

namespace jouleprof::report {
namespace {

Result<void> write(const analysis::Run& run, const analysis::Part& part,
                   const FormatOptions& options, std::ostream& out) {
  const auto figure = run_svg(run, part, options);
  if (!figure) return forward_error(figure);
  const auto png = png_of_svg(*figure);
  if (!png) return forward_error(png);
  out << *png;
  return {};
}

}  // namespace

extern const Format png_format;
constinit const Format png_format{
    .name = "png",
    .extension = ".png",
    .shows = "the figure of \"svg\" as a picture; needs librsvg (librsvg2-2)",
    .is_packed = true,
    .write = write};

}  // namespace jouleprof::report
