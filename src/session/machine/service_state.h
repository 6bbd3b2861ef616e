// The counters of a service, kept over its restarts.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "analysis/live/machine_state.h"
#include "base/result.h"

namespace jouleprof::session {

// Replaces the file at `path` at once: after a crash it has the old counters or the new ones.
// `boot`: of the running kernel (spans::boot_id). Errors: as replace_file's.
Result<void> save_service_state(const std::filesystem::path& path,
                                const analysis::MachineState& state,
                                const analysis::EnergyAccounts& accounts, std::string_view boot);

// Continues the counters of an earlier service. Devices are found by UUID, or where they have none
// by their name; what an earlier device had is left out. `state` has the domains of its snapshot
// and its start. The time from the last save to `state.started` is counted as a gap of each device.
// Processes are continued within one boot; those of an earlier one ended.
// False: there is no file. Errors: of the file system; corrupt for a file that is no saved state.
// Then nothing is changed.
Result<bool> restore_service_state(const std::filesystem::path& path, std::string_view boot,
                                   analysis::MachineState& state,
                                   analysis::EnergyAccounts& accounts);

}  // namespace jouleprof::session
