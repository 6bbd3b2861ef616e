// A way to write an analysed run: the registry from which export, report, --help and the docs take
// their lists. A new format is a folder with a Format, and a line in formats.inc.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run.h"
#include "base/result.h"
#include "model/activity/activity_profile.h"
#include "model/activity/collective.h"
#include "model/activity/serving.h"
#include "model/profile.h"
#include "model/wall_log.h"
#include "report/activity/activity.h"
#include "report/cells.h"
#include "report/costs/costs.h"
#include "report/costs/wall.h"
#include "report/total.h"

namespace jouleprof::report {

// The table of an inference server's requests, or of their tenants.
struct ServingOptions {
  bool by_tenant = false;
  std::optional<std::size_t> top;  // those with the most energy, of text; absent: all
};

struct FormatOptions {
  // The table by kernel, layer, range or phase, of formats that have it; absent: the summary.
  std::optional<ActivityOptions> by;
  bool collectives = false;               // the table of collectives by rank, of "text" and "json"
  std::optional<ServingOptions> serving;  // the table of requests, of "text", "json", "domains"
  bool windows = false;                   // the table of windows, of "text", "json" and "domains"
  CostFactors costs;                      // of the summary as text, JSON and page
  std::optional<model::WallLog> wall;     // shown with the summary as text and JSON
  std::optional<UnitCount> per;           // units of work, of the summary as text and JSON
  TextOptions text;                       // of the format "text"
  std::string version;                    // of the tool, for formats that name it
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

// Format::write of a format that `make` makes as one text.
template <Result<std::string> (*make)(const analysis::Run& run, const analysis::Part& part,
                                      const FormatOptions& options)>
Result<void> write_made(const analysis::Run& run, const analysis::Part& part,
                        const FormatOptions& options, std::ostream& out) {
  const auto text = make(run, part, options);
  if (!text) return forward_error(text);
  out << *text;
  return {};
}

// --- What formats of attributed energy start from ---

// run.activity(part), which has at least one profile. Errors: as Run::activity(); unavailable, with
// what the recording says of its tracing and what records rows of `by`, when nothing was traced.
Result<const std::vector<model::ActivityProfile>*> traced_activity(
    const analysis::Run& run, const analysis::Part& part, ActivityBy by = ActivityBy::kKernel);

// How a format writes each of the tables that options ask for, and the summary.
struct TableWriters {
  std::function<std::string(const model::ServingProfile&)> serving;
  std::function<std::string(const model::Profile&)> windows;
  std::function<std::string(const model::CollectiveProfile&)> collectives;  // empty: it has none
  std::function<std::string(const std::vector<model::ActivityProfile>&)> activity;
  std::function<Result<std::string>(const model::Profile&)> summary;
};
// Errors: as the Run's; unavailable, and what records it, when the recording has nothing for the
// table.
Result<void> write_table_or_summary(const analysis::Run& run, const analysis::Part& part,
                                    const FormatOptions& options, const TableWriters& writers,
                                    std::ostream& out);

// Absent: they are not requested. Errors: as costs_of().
Result<std::optional<Costs>> requested_costs(const analysis::Run& run, const analysis::Part& part,
                                             const FormatOptions& options);

// The moments whose readings a table of readings has: of a part its own, of the whole all that was
// recorded. Errors: as Run::span(), of which imported windows without a time are none.
Result<analysis::PartSpan> readings_span(const analysis::Run& run, const analysis::Part& part);

// --- A profile as people and programs read it ---

// At most one screen. Names are made harmless for a terminal.
std::string to_text(const model::Profile& profile, const TextOptions& options = {});
// The text with `below`, the lines of units and costs, under it.
std::string to_text(const model::Profile& profile, TextOptions options, const std::string& below);

// The documented JSON object (docs/json.md), indented, with a final newline. What is unavailable is
// null; energies have six decimals, so that sums are exact. Invalid UTF-8 becomes U+FFFD. `costs`,
// `wall`, `per`: nullptr where none were requested.
std::string to_json(const model::Profile& profile, const Costs* costs = nullptr,
                    const WallComparison* wall = nullptr, const PerUnit* per = nullptr);

// The table of --by window: a row for each name of windows and each domain with a figure, in order
// of first appearance.
std::string windows_to_text(const model::Profile& profile, const TextOptions& options);
std::string windows_to_json(const model::Profile& profile);  // docs/json.md; with a final newline
std::string windows_to_csv(const model::Profile& profile);   // of every domain

// Lines of money and carbon, for the end of a summary.
std::string costs_to_text(const Costs& costs, const TextOptions& text);

// Lines of the energy of one unit of work, for the end of a summary.
std::string per_unit_to_text(const PerUnit& per, const TextOptions& text);

// One row a domain, with a header. What is unavailable is an empty field.
std::string to_csv(const model::Profile& profile);

// One row a process, with a header; after the fixed columns one "NAME_joules" for each domain.
std::string processes_to_csv(const model::Profile& profile);

// --- Requests of inference servers, as people and programs read them ---

std::string serving_to_text(const model::ServingProfile& profile, const ServingOptions& options,
                            const TextOptions& text = {});
// What was divided, for the end of a run.
std::string serving_to_brief_text(const model::ServingProfile& profile,
                                  const TextOptions& text = {});
// The documented JSON object (docs/json.md), and a row for each request or tenant. `being_written`:
// of the recording, so that more steps may come.
std::string serving_to_json(const model::ServingProfile& profile, bool being_written);
std::string serving_to_csv(const model::ServingProfile& profile, const ServingOptions& options);

// --- Collectives by rank, as people and programs read them ---

std::string collectives_to_text(const model::CollectiveProfile& profile,
                                const TextOptions& text = {});

// The ranks' rows and the rank that was waited for longest, for the end of a run. Empty where no
// collectives of two ranks were matched.
std::string collectives_to_brief_text(const model::CollectiveProfile& profile,
                                      const TextOptions& text = {});

// The documented JSON object (docs/json.md).
std::string collectives_to_json(const model::CollectiveProfile& profile);

// "rank 3", or "pid 71" of a process without a number.
std::string rank_name(const model::CollectiveRank& rank);

}  // namespace jouleprof::report
