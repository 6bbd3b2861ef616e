// The scope in which a thread launches work: its layer, named range and phase, kept where a launch
// callback reads them in a few nanoseconds.
#pragma once

#include <cstdint>

#include "model/activity/activity.h"

namespace jouleprof::scopes {

// The calling thread's own. Layers and ranges set their part and put back what was there.
model::Scope& this_thread() noexcept;

// Called when a thread outside of all layers launches work, such as a backward pass: fills layer
// and phase and returns true, or leaves them unchanged. Must not throw, block or allocate. nullptr:
// there is no finder.
using Finder = bool (*)(model::Scope& scope) noexcept;
void set_finder(Finder finder) noexcept;

// The identifier of the calling thread's scope; model::kNone when it is in no layer, range or
// phase. A few nanoseconds when it is the same as before; allocates only for a new scope.
std::uint32_t current() noexcept;

// The identifier of the layer and phase of `node`, a scope that a node of a CUDA graph was captured
// in, within the range of `launch`, the scope that the graph is launched in; each takes the other's
// part where it has none. Either may be model::kNone.
std::uint32_t merged(std::uint32_t node, std::uint32_t launch) noexcept;

// New identifiers. Thread-safe. model::kNone once there are 1,000,000 of a kind.
std::uint32_t add(const model::Layer& layer);
std::uint32_t add(const model::Range& range);       // the same range gives the same identifier
std::uint32_t add_once(const model::Layer& layer);  // the same name and parent, too

// The identifier of the range of the same name as `range` within `parent` (or model::kNone).
std::uint32_t add_within(std::uint32_t range, std::uint32_t parent);

// Defines, for the sink, what has been added since the last call: layers and ranges before the
// scopes that name them.
void send(model::ActivitySink& sink);

// The next send() is to a new sink and repeats everything.
void send_all_again();

}  // namespace jouleprof::scopes
