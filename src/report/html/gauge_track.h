// Clocks, temperatures, utilisation and limits over time, reduced to what a screen shows.
#pragma once

#include "analysis/run.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

// One object for each gauge of a domain: id (of the domain), quantity (gauge_names.h), times
// (seconds since `origin`) and values. Of more than `points` readings the extremes of equal
// intervals are kept.
Json gauge_tracks(const analysis::Run& run, const analysis::PartSpan& span, HostTime origin,
                  std::size_t points);

// The intervals in which a GPU's clocks were reduced: id, begin_seconds, end_seconds and reasons.
Json clock_limit_tracks(const analysis::Run& run, const analysis::PartSpan& span, HostTime origin);

}  // namespace jouleprof::report
