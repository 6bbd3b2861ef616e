// The lines of `nvidia-smi dmon` and `nvidia-smi pmon`.
#pragma once

#include <optional>
#include <string_view>

#include "importers/row_log.h"

namespace jouleprof::importers {

// The cells of a line, without the '#' in front: between commas where there are any, else between
// blanks.
Cells dmon_cells(std::string_view line);

// A header line: [Date] [Time] gpu, then columns. CSV may leave out the '#'.
struct DmonHeader {
  Cells names;                 // in lower case, without units
  bool is_pmon = false;        // it has a column pid
  bool has_instances = false;  // of MIG
  bool has_times = false;
};
std::optional<DmonHeader> parse_dmon_header(std::string_view line);

// A line below a header that says units: "# Idx W C".
bool is_dmon_units(const Cells& cells);

// A cell of a row: a number, a time of day or "-".
bool is_dmon_value(std::string_view cell);

// Whether a line has a cell and begins with such a one; a lone "#" has none.
bool begins_with_value(const Cells& cells);

}  // namespace jouleprof::importers
