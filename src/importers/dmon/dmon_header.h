// Reads header lines of `nvidia-smi dmon`, and splits its lines into fields.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "importers/csv_table.h"
#include "importers/dmon/dmon_log.h"

namespace jouleprof::importers {

// Fields of a line: between commas where there are any, else between blanks.
std::vector<std::string_view> dmon_fields(std::string_view line);

// A line without the '#' in front that headers have.
std::string_view without_hash(std::string_view line);

struct DmonColumn {
  std::string_view name;
  std::string_view unit;
  DmonField field;
};

struct DmonHeader {
  std::optional<std::size_t> date, time, gpu;
  std::vector<const DmonColumn*> columns;  // by position; null: unknown, or one of the above
  bool is_pmon = false;
  bool has_instances = false;   // of MIG
  std::string_view wrong_unit;  // a column in another unit than dmon's

  DmonStamps stamps() const {
    if (!time) return DmonStamps::kNone;
    return date ? DmonStamps::kDateTime : DmonStamps::kTime;
  }
};

// The header that `line` is. It begins with [Date] [Time] gpu; CSV may leave out the '#'. pmon's
// header is one too. `wrong_unit` points into `line`.
std::optional<DmonHeader> parse_dmon_header(std::string_view line);

}  // namespace jouleprof::importers
