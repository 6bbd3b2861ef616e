// A run as one figure: headline, balance and power over time.
#pragma once

#include <string>

#include "report/format/format.h"

namespace jouleprof::report {

// An SVG document without scripts or references. Errors: as Run::profile().
Result<std::string> run_svg(const analysis::Run& run, const analysis::Part& part,
                            const FormatOptions& options);

}  // namespace jouleprof::report
