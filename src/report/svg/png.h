// A picture of an SVG document.
#pragma once

#include <string>

#include "base/result.h"

namespace jouleprof::report {

// Errors: unavailable where librsvg-2 or cairo is not installed.
Result<void> check_png();

// The PNG file of `svg`, `scale` pixels for each of its own. It is drawn by librsvg-2 and cairo,
// which are loaded at the first call. Errors: as check_png(); internal with their words.
Result<std::string> png_of_svg(const std::string& svg, double scale = 2);

}  // namespace jouleprof::report
