// A CSV file with a header line, column by name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importers/importer.h"
#include "importers/lines.h"

namespace jouleprof::importers {

// The header's names, trimmed; empty when `text` has no line. For recognising a format.
std::vector<std::string> csv_header(std::string_view text);

std::optional<std::size_t> find_column(const std::vector<std::string>& header,
                                       std::string_view name);

// The "N" of a name such as "gpuN_energy"; nothing for any other name.
std::optional<int> numbered_column(std::string_view name, std::string_view prefix,
                                   std::string_view suffix);

// The error of a header that lacks a column.
tl::unexpected<Error> missing_column(const SourceText& source, std::string_view name);

}  // namespace jouleprof::importers
