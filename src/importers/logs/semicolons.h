// Logs whose commas a spreadsheet has made semicolons.
#pragma once

#include <string>
#include <string_view>

#include "importers/importer.h"

namespace jouleprof::importers {

// Whether its first line with a header of nvidia-smi has semicolons, and no comma.
bool has_semicolons(std::string_view text);

// The log as nvidia-smi writes it: commas between cells, points in numbers. Line for line.
// Errors: corrupt where a number can be read in two ways; it says what to do.
Result<std::string> with_commas(const SourceText& source);

}  // namespace jouleprof::importers
