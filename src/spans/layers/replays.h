// Layers that are run in isolation, to identify their kernels: which one, and when.
#pragma once

#include <cstdint>

#include "model/activity/activity_sink.h"

namespace jouleprof::layers {

// Thread safety: all from any thread; the first three by one thread at a time.

// The process's work from now on is not the program's: calls of layers are not traced (set_active).
void begin_replay();

// The work since begin_replay(), or since the last call of this, was `calls` of `layer`; with 0
// calls, launches of one of its kernels; with model::kNone, their preparation.
void replayed(std::uint32_t layer, std::uint64_t calls);

// The work of the program continues.
void end_replay();

// Sends a kReplay chunk for each call of replayed() since this was called last, after the layers'
// definitions.
void send_replays(model::ActivitySink& sink);

}  // namespace jouleprof::layers
