// Calls of layers, for the tracer of this process.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "model/activity/activity.h"
#include "model/activity/activity_codec.h"

namespace jouleprof::layers {

// Sends the calls and times since the last call of this as one chunk of kLayers, after the
// definitions of the layers (scopes::send), and the re-runs (send_replays). Without calls
// there is no chunk. Threads that call layers do not wait for it. From one thread at a time.
void send(model::ActivitySink& sink, HostTime now);

// Drops the calls and times since then.
void forget();

// While false, calls of modules are not traced. Starts as false.
void set_active(bool active) noexcept;
bool active() noexcept;

// Whether each call from outside of all layers takes the process's CPU time, which costs two system
// calls: for energy that is split by time. Starts as false.
void take_cpu_time(bool take) noexcept;

// Why records of layers are missing, each reason once; empty: none is known to be.
std::string problem();
void add_problem(const std::string& text);

// Kernels that are re-run in isolation: when, and for how many launches of the program.

// Thread safety: all from any thread; the first three by one thread at a time.

// The process's work from now on is not the program's: calls of layers are not traced (set_active).
void begin_replay();

// The work since begin_replay(), or since the last call of this or the next one, prepared a loop.
void replay_prepared();
// It was launches of one kernel, whichever layers launch it in the program.
void replayed_kernel(const model::KernelRerun& loop);

// The work of the program continues.
void end_replay();

// Sends a kReplay chunk for each call of the two above since this was called last, after the
// layers' definitions.
void send_replays(model::ActivitySink& sink);

}  // namespace jouleprof::layers
