// Energies of kernels, layers, ranges and phases by time, for the page's script.
#pragma once

#include <vector>

#include "model/activity/activity_slices.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

// One object for each device: id (of the domain), begin_seconds (since `origin`), step_seconds,
// count, and for each table ("kernel", "layer", "range", "phase") its rows as arrays:
//   [number, microjoules of one unit, energies in units, error ratio, error more, errors]
// Half of the 95 % interval of the sum of some slices is at most
//   the sum of their `errors`, in units, where these are present; else
//   ratio x the sum of the absolute energies + more (units).
Json slices_json(const std::vector<model::ActivitySlices>& slices, HostTime origin);

}  // namespace jouleprof::report
