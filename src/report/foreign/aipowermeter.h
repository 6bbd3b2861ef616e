// AIPowerMeter's JSON Lines (its power_metrics.json), readable by its own JsonParser.
//
// One object a line: {"date": local time, "metrics": {"cpu": {...}, "gpu": {...}}}, then the line
// "END OF RECORDING SEGMENT" when the recording was closed in order. Powers are watts, memory
// bytes, utilisations ratios. In addition to the fields of that format, each line has "provenance",
// the word for each section, because the format has none of its own.
//
// Its reader integrates by the trapezoid rule over the points of a segment. Points here are evenly
// spaced from end to end of one, each the mean power of the interval around it (half an interval at
// both ends), so that its sum gives back the energy of the curve. A segment ends where a domain's
// power begins or ends, and at a step of the wall clock.
//
// A process has in each line the part of its energy in the profile that is proportional to the
// device's power while the process lived: the reader's sums are the profile's. What is absent
// is left out where its reader allows that; the maps it insists on are there and empty, and an
// unknown total is null, which it skips. Nothing is ever 0 or -1 for lack of a reading.
#pragma once

#include <ostream>
#include <vector>

#include "base/result.h"
#include "model/profile.h"
#include "model/recording.h"
#include "report/figures.h"

namespace jouleprof::report {

// Writes the work's span of the recording, or all that the curves cover where there was no work.
// `processes`: of the profile of that span. `period` is about the time between two lines; it is
// fitted to each segment.
// Errors: unavailable when no curve has a step; invalid_argument when the period is not positive.
Result<void> write_aipowermeter(std::ostream& out, const model::Recording& recording,
                                const std::vector<PowerCurve>& curves,
                                const std::vector<model::ProcessProfile>& processes,
                                Duration period = std::chrono::seconds(1));

}  // namespace jouleprof::report
