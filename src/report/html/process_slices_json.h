// Energies and CPU time of processes by time, for the page's script.
#pragma once

#include "model/process/process_slices.h"
#include "model/profile.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

// An object: begin_seconds (since `origin`), step_seconds, count, and rows as arrays, whose values
// are those of slices from `first` on:
//   energy: [process, domain, microjoules of one unit, first, energies in units]
//   cpu: [process, first, milliseconds]
// A process is its place in the profile's list.
Json process_slices_json(const model::ProcessSlices& slices, const model::Profile& profile,
                         HostTime origin);

}  // namespace jouleprof::report
