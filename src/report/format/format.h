// A way to write an analysed run: the registry from which export, report, --help and the docs take
// their lists. A new format is a folder with a Format, and a line in formats.inc.
#pragma once

#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "analysis/run.h"
#include "base/result.h"
#include "model/wall_log.h"
#include "report/activity/activity.h"
#include "report/costs/costs.h"
#include "report/per_unit.h"
#include "report/render.h"

namespace jouleprof::report {

struct FormatOptions {
  // The table by kernel, layer, range or phase, of formats that have it; absent: the summary.
  std::optional<ActivityOptions> by;
  bool collectives = false;            // the table of collectives by rank, of "text" and "json"
  bool windows = false;                // the table of windows, of "text", "json" and "domains"
  CostFactors costs;                   // of the summary as text, JSON and page
  std::optional<model::WallLog> wall;  // shown with the summary as text and JSON
  std::optional<UnitCount> per;        // units of work, of the summary as text and JSON
  TextOptions text;                    // of the format "text"
  std::string version;                 // of the tool, for formats that name it
  bool redact = false;  // of the format "html": leave out what names a person, machine or folder
};

struct Format {
  std::string_view name;       // as --format takes it
  std::string_view extension;  // of its files, such as ".trace.json"; the longest that fits decides
  std::string_view shows;      // what it writes, and for which program: one phrase
  bool has_tables = false;     // FormatOptions::by is followed; other formats ignore it
  bool is_packed = false;      // it is gzip already
  // Errors: as Run's; unavailable when the recording has nothing that the format shows.
  Result<void> (*write)(const analysis::Run& run, const analysis::Part& part,
                        const FormatOptions& options, std::ostream& out);
};

// In the order of docs/cli.md.
std::span<const Format* const> formats();

// By its name; nullptr for any other word.
const Format* find_format(std::string_view name);

// The format of files called so, ".gz" at the end left out; nullptr where none is known.
const Format* format_of_file(std::string_view path);

}  // namespace jouleprof::report
