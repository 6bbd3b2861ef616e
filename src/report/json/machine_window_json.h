// A window of `jouleprof serve` as one JSON object: `jouleprof.window/1` (docs/json.md).
#pragma once

#include <string>

#include "analysis/live/machine_state.h"
#include "analysis/live/machine_window.h"

namespace jouleprof::report {

// `state` has the domains and clocks of the machine. Without `estimates` figures that are computed
// by a model are left out.
std::string machine_window_json(const analysis::MachineWindow& window,
                                const analysis::MachineState& state, bool estimates);

}  // namespace jouleprof::report
