// AIPowerMeter's JSON Lines (its power_metrics.json), readable by its own JsonParser.
//
// One object a line: {"date": local time, "metrics": {"cpu": {...}, "gpu": {...}}}, then the line
// "END OF RECORDING SEGMENT" when the recording was closed in order. Powers are watts, memory
// bytes, utilisations ratios. In addition to the fields of that format, each line has "provenance",
// the word for each section, because the format has none of its own.
//
// Its reader integrates by the trapezoid rule over points. Points here are evenly spaced, each the
// mean power of the stretch around it (half a stretch at both ends), so that its sum gives back the
// energy of the curve.
//
// A domain whose curve covers less than half of a point's stretch is absent from it. What is absent
// is left out where its reader allows that; the maps it insists on are there and empty, and an
// unknown total is null, which it skips. Nothing is ever 0 or -1 for lack of a reading.
#pragma once

#include <ostream>
#include <vector>

#include "base/result.h"
#include "model/profile.h"
#include "model/recording.h"
#include "report/curves.h"

namespace jouleprof::report {

// Writes the work's span of the recording, or all that the curves cover where there was no work.
// `period` is about the time between two lines; it is fitted to the span.
// Errors: unavailable when no curve has a step; invalid_argument when the period is not positive.
Result<void> write_aipowermeter(std::ostream& out, const model::Recording& recording,
                                const std::vector<PowerCurve>& curves,
                                Duration period = std::chrono::seconds(1));

}  // namespace jouleprof::report
