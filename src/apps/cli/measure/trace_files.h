// What `run` and `bench` need to trace kernels and layers.
#pragma once

#include "base/result.h"
#include "meters/all/open_meters.h"
#include "session/run/session.h"

namespace jouleprof::cli {

// Whether a program here may use CUDA: NVML lists a GPU, or its driver is present without NVML.
bool may_use_cuda(const meters::MeterSet& found);

// Sets the library and the folder that traced programs load. Errors: not_found.
Result<void> find_trace_files(session::TraceOptions& trace);

// By their kernels, or by CPU time where there can be none.
void choose_clock_of_layers(const meters::MeterSet& found, session::SessionOptions& options);

}  // namespace jouleprof::cli
