// The counters of a service, kept over its restarts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "analysis/live/machine_state.h"
#include "base/result.h"

namespace jouleprof::session {

// The counters, with all text in UTF-8. `boot`: of the running kernel (spans::boot_id).
nlohmann::json service_state(const analysis::MachineState& state,
                             const analysis::EnergyAccounts& accounts, std::string_view boot);

// Continues the counters of an earlier service. Devices are found by UUID, or where they have none
// by their name; what an earlier device had is left out. `state` has the domains of its snapshot
// and its start. Where a device's own counter stood at the last save is in its `before`, if that
// was within this boot. The time from the last save to `now` is missing. Processes are continued
// within one boot; those of an earlier one ended. Errors: corrupt for what no service has made,
// which `name` then names. Nothing is changed then.
Result<void> restore_service_state(const nlohmann::json& saved, std::string_view name,
                                   std::string_view boot, RealTime now,
                                   analysis::MachineState& state,
                                   analysis::EnergyAccounts& accounts);

}  // namespace jouleprof::session
