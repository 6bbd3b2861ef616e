// Reads a *.jprof file, complete, cut off, or still being written.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "model/recording.h"

namespace jouleprof::recording {

// The whole recording as of its last commit; `run.complete` is false when it was cut off or is
// still being written. Domains, sensors and processes come in the order of their ids, readings in
// that of time (counters: of `before`; equal times in the order in which they were written), the
// rest as written. All ids that are referred to exist, times and energies are within +-2^62 ns or
// uJ, numbers are finite, intervals do not end before they begin, domains' parents do not run in a
// circle, and of traces all holds that recording/spool/trace_check.h says.
//
// Needs no right to write, and leaves nothing behind; a cut-off file in a folder that may be
// written to can have its side files renewed. Hostile files are an error within time and memory
// proportional to their size.
//
// Errors: not_found; permission_denied; corrupt when it is damaged; unsupported when it is not a
// recording, or a newer version of the tool wrote it (the message names both).
Result<model::Recording> read_recording(const std::filesystem::path& path);

}  // namespace jouleprof::recording
