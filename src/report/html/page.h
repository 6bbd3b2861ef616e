// Pages for a browser: of comparisons, sweeps, benchmarks and jobs, and the parts that the page of
// a run shares with them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/job/job.h"
#include "analysis/run.h"
#include "base/result.h"
#include "model/domain.h"
#include "report/figures.h"
#include "report/format/format.h"
#include "report/json/values.h"
#include "report/results/bench.h"
#include "report/results/comparison.h"
#include "report/results/job.h"
#include "report/results/recommendation.h"

namespace jouleprof::report {

struct PageOptions {
  std::string version;  // of the tool
  std::string again;    // the command that prints the same figures; empty: not named
  bool redact = false;  // without names of files, hosts, jobs and commands (results/redaction.h)
};

// Each page holds what it shows of the document of --json as data; its headline needs no script.
// Errors: internal.
Result<std::string> comparison_to_html(const ComparisonReport& whole, const PageOptions& options);
// `runs`: of our own sweep, for the state of the GPU; may be empty.
Result<std::string> recommendation_to_html(const std::vector<AdvisedSweep>& sweeps,
                                           const RecommendationOptions& recommendation,
                                           const std::vector<model::SweepRun>& runs,
                                           const PageOptions& options);
Result<std::string> bench_to_html(const model::BenchDocument& document,
                                  const std::vector<BenchResult>& results,
                                  const PageOptions& options);
Result<std::string> job_to_html(const analysis::Job& whole, const JobOptions& job_options,
                                const PageOptions& options);

// --- A page from its template and its parts ---

struct PageParts {
  std::string title;       // text
  std::string headline;    // HTML, which needs no script
  std::string provenance;  // HTML
  Json data;               // for the page's script (web/src/data.ts)
};
// Errors: internal, where the template lacks a mark.
Result<std::string> assemble_page(const PageParts& parts);

// The keys that the data of every page that is not of a run begin with.
Json page_head(const PageOptions& options);
std::string page_foot(const PageOptions& options);

// HTML of text: `<tag class="kind">text</tag>`.
std::string element(std::string_view tag, std::string_view kind, std::string_view text);
std::string badge(std::string_view kind, std::string_view word);
std::string badge(model::Provenance provenance);
// The figure in large letters, with what belongs to it in small ones.
std::string hero(std::string_view figure, std::string_view error, std::string_view badge_html,
                 std::string_view line);
// A table that scrolls where it is too wide. The first cell of a row is its heading; the others are
// numbers. Cells are text.
std::string figure_table(std::string_view name, const std::vector<std::string>& headings,
                         const std::vector<std::vector<std::string>>& rows);

// The page without its data. Built from web/ by `make page`, and compiled in.
extern const std::string_view kTemplate;         // of a run
extern const std::string_view kResultsTemplate;  // of a comparison, sweep, benchmark or job

// --- Data in a page. Names come from the measured program: none may become markup ---

// A JSON document on one line, for a <script type="application/json">: it has no '<', so that
// neither "</script>" nor "<!--" ends it, and no U+2028 or U+2029.
std::string script_json(const Json& document);

// Rows that share their keys as {"keys": [...], "rows": [[...]]}, which takes half of the room.
// Keys of `dropped` are left out; the order of the others is the first row's.
Json packed_rows(const Json& rows, const std::vector<std::string_view>& dropped = {});

// --- What the page's script draws from ---

// Energies of one row over one slice of time, in all.
inline constexpr std::size_t kMostSliceCells = 24'000;

// "profile" is the document of `report --json`, "activity" those of `--by kernel`, `layer`, `range`
// and `phase` with their rows packed (packed_rows), "stacks" the energy by phase, layer, range and
// kernel of each device, "slices" energies of rows by time (page_data.cpp), and "timeline" power,
// gauges and windows over time. `profile` may be redacted. Errors: as Run::activity().
Result<Json> page_data(const analysis::Run& run, const analysis::Part& part,
                       const FormatOptions& options, const model::Profile& profile,
                       const Costs* costs);

// Power over time, for the page's script.
// One object for each track. Times are seconds since `origin`.
//   id, begin_seconds, end_seconds, step_seconds, resolution_seconds
//   energy_microjoules   of each step; null where nothing was read
//   error_microjoules, repeatability_microjoules, calibration_ratio   as in PowerTrack
//   high_watts, low_watts   the extremes within each step, where they are known
Json power_json(const std::vector<PowerTrack>& tracks, HostTime origin);

// --- Clocks, temperatures, utilisation and limits over time, reduced to what a screen shows ---

// One object for each gauge of a domain: id (of the domain), quantity (model/device/sensor.h),
// times (seconds since `origin`) and values. Of more than `points` readings the extremes of equal
// intervals are kept.
Json gauge_tracks(const analysis::Run& run, const analysis::PartSpan& span, HostTime origin,
                  std::size_t points);

// The intervals in which a GPU's clocks were reduced: id, begin_seconds, end_seconds and reasons.
Json clock_limit_tracks(const analysis::Run& run, const analysis::PartSpan& span, HostTime origin);

// --- Windows and isolated re-runs over time, reduced to what a screen shows ---

// {"names": [...], "blocks": [...], "lanes": n}: each block is [lane, name, begin, length, count,
// energies], and of several windows the sum of their lengths. Times are seconds since `origin`. A
// block stands for `count` windows: those too short to be drawn are joined. `energies` is
// [[domain's id, microjoules, error], ...], an error the sum of the windows'; null for windows of
// several names. The name of windows of different names that are joined is -1. Windows that overlap
// are in different lanes. The first "request_lanes" are of requests: windows whose names have that
// word. "in_flight" has how many of them ran at once: begin_seconds, step_seconds and the "means"
// of the steps; null where there was never more than one.
Json window_track(const analysis::Run& run, const analysis::PartSpan& span, HostTime origin,
                  std::size_t blocks);

// [begin, length, name] of each isolated re-run. Errors: corrupt when a chunk cannot be decoded.
Result<Json> replay_track(const analysis::Run& run, const analysis::PartSpan& span,
                          HostTime origin);

}  // namespace jouleprof::report
