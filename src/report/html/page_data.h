// What the page's script draws from.
#pragma once

#include <vector>

#include "analysis/run.h"
#include "base/result.h"
#include "report/figures.h"
#include "report/format/format.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

// Energies of one row over one slice of time, in all.
inline constexpr std::size_t kMostSliceCells = 24'000;

// "profile" is the document of `report --json`, "activity" those of `--by kernel`, `layer`, `range`
// and `phase` with their rows packed (markup.h), "stacks" the energy by phase, layer, range and
// kernel of each device, "slices" energies of rows by time (slices_json.h), and "timeline" power,
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

// Clocks, temperatures, utilisation and limits over time, reduced to what a screen shows.

// One object for each gauge of a domain: id (of the domain), quantity (model/device/sensor.h),
// times (seconds since `origin`) and values. Of more than `points` readings the extremes of equal
// intervals are kept.
Json gauge_tracks(const analysis::Run& run, const analysis::PartSpan& span, HostTime origin,
                  std::size_t points);

// The intervals in which a GPU's clocks were reduced: id, begin_seconds, end_seconds and reasons.
Json clock_limit_tracks(const analysis::Run& run, const analysis::PartSpan& span, HostTime origin);

// Windows and isolated re-runs over time, reduced to what a screen shows.

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
