// The trace of this process: one at a time, made when it is first wanted.
#pragma once

#include "spans/cupti/tracer.h"

namespace jouleprof::inject {

// Thread safety: all functions from any thread. None throws or fails the program. A forked child
// has no trace until it begins its own.

// Begins to write a spool into `folder`; `what` is a comma list of kernels, layers and events.
// False when the folder cannot be written. Does nothing while there is a trace already. Kernels are
// traced from now on where CUDA runs already, else from start_kernels() on.
bool begin(const char* folder, const char* what) noexcept;

// CUDA starts now: traces kernels if they are wanted.
void start_kernels() noexcept;

// See cupti::Tracer.
void every_node(bool wanted) noexcept;

// Returns when all that ended before is in the spool, or after 10 seconds.
void flush() noexcept;

// Sends all records and ends. `exiting`: the process is about to end.
void end(bool exiting) noexcept;

// Calls `source` about once a second, for this trace and later ones.
void add_source(cupti::Tracer::Source source) noexcept;

}  // namespace jouleprof::inject
