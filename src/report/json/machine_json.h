// What a service knows of its machine, as one JSON object: `jouleprof.machine/1` (docs/json.md).
#pragma once

#include <string>
#include <string_view>

#include "analysis/live/machine_state.h"

namespace jouleprof::report {

struct MachineJsonOptions {
  std::string_view version;
  std::string_view host;
  bool estimates = true;  // false: figures that are computed by a model are left out
  std::size_t most = 50;  // entities of each family: those with the highest energy
};

std::string machine_json(const analysis::MachineState& state,
                         const analysis::EnergyAccounts& accounts,
                         const MachineJsonOptions& options);

}  // namespace jouleprof::report
