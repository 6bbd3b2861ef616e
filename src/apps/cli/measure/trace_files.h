// What `run`, `compare` and `bench` need to trace kernels and layers.
#pragma once

#include <string>

#include "base/result.h"
#include "meters/all/open_meters.h"
#include "session/run/session.h"

namespace jouleprof::cli {

// Whether a program here may use CUDA: NVML lists a GPU, or its driver is present without NVML.
bool may_use_cuda(const meters::MeterSet& found);

// What --replay without a time means: how long each kind of layer and kernel runs in isolation.
inline constexpr const char* kReplay = "0.4s";
// Seconds. Errors: invalid_argument.
Result<double> parse_replay(const std::string& text);

// Sets the library and the folder that traced programs load. Errors: not_found.
Result<void> find_trace_files(session::TraceOptions& trace);

// By their kernels, or by CPU time where there can be none.
void choose_clock_of_layers(const meters::MeterSet& found, session::SessionOptions& options);

}  // namespace jouleprof::cli
