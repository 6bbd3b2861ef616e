// Calls of layers, as the tracer of this process tells them.
#pragma once

#include <string>

#include "base/clock.h"
#include "model/activity_sink.h"

namespace jouleprof::layers {

// Tells, as one chunk of kLayers, the calls and times since the last time this was called, after
// the layers' definitions (scopes::tell). Threads that call layers meanwhile do not wait. From one
// thread at a time. Nothing is told when there was nothing.
void tell(model::ActivitySink& sink, HostTime now);

// Forgets the calls and times since then.
void forget();

// While false, modules are called as if this library was not there. Starts as false.
void set_active(bool active) noexcept;
bool active() noexcept;

// Why layers are missing, or part of what they could tell; empty when all is well.
std::string problem();
void set_problem(const std::string& text);  // the first one stays

}  // namespace jouleprof::layers
