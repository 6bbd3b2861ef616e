// What is known now, as JSON (docs/json.md): of the machine of a service, and as a snapshot.
#pragma once

#include <string>
#include <string_view>

#include "analysis/live/machine_state.h"
#include "model/snapshot.h"

namespace jouleprof::report {

struct MachineJsonOptions {
  std::string_view version;
  std::string_view host;
  bool estimates = true;  // false: figures that are computed by a model are left out
  std::size_t most = 50;  // entities of each family: those with the highest energy
};

// What a service knows of its machine, as one JSON object: `jouleprof.machine/1`.
std::string machine_json(const analysis::MachineState& state,
                         const analysis::EnergyAccounts& accounts,
                         const MachineJsonOptions& options);

// A window of `jouleprof serve` as one JSON object: `jouleprof.window/1` (docs/json.md).
// `state` has the domains and clocks of the machine. Without `estimates` figures that are computed
// by a model are left out.
std::string machine_window_json(const analysis::MachineWindow& window,
                                const analysis::MachineState& state, bool estimates);

// --- A snapshot as JSON, schema jouleprof.snapshot/2 (docs/json.md) ---

// One object on one line, with the rows of the monitor.
std::string snapshot_json_line(const model::Snapshot& snapshot);

// An object as above without a line end, with every domain, also those without an energy.
std::string snapshot_json(const model::Snapshot& snapshot);

}  // namespace jouleprof::report
