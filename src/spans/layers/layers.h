// Calls of layers, as the tracer of this process tells them.
#pragma once

#include <string>

#include "base/clock.h"
#include "model/activity_sink.h"

namespace jouleprof::layers {

// Tells, as one chunk of kLayers, the calls and times since the last time this was called, after
// the layers' definitions (scopes::tell), and what was replayed (replays.h). Threads that call
// layers meanwhile do not wait. From one thread at a time. Nothing is told when there was nothing.
void tell(model::ActivitySink& sink, HostTime now);

// Forgets the calls and times since then.
void forget();

// While false, modules are called as if this library was not there. Starts as false.
void set_active(bool active) noexcept;
bool active() noexcept;

// Whether each call from outside of all layers takes the process's CPU time: two system calls, for
// where layers' energy is told by their time. Starts as false.
void take_cpu_time(bool take) noexcept;

// Why layers are missing, or part of what they could tell, all that was said once each; empty when
// all is well.
std::string problem();
void add_problem(const std::string& text);

}  // namespace jouleprof::layers
