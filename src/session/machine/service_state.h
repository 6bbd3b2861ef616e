// The counters of a service, kept over its restarts.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "analysis/live/machine_state.h"
#include "base/result.h"

namespace jouleprof::session {

// The counters as text. `boot`: of the running kernel (spans::boot_id).
std::string service_state_text(const analysis::MachineState& state,
                               const analysis::EnergyAccounts& accounts, std::string_view boot);

// Replaces the file at `path`, compressed with gzip, at once: after a crash it has the old counters
// or the new ones. Errors: as replace_file's.
Result<void> save_service_state(const std::filesystem::path& path,
                                const analysis::MachineState& state,
                                const analysis::EnergyAccounts& accounts, std::string_view boot);

// Continues the counters of an earlier service. Devices are found by UUID, or where they have none
// by their name; what an earlier device had is left out. `state` has the domains of its snapshot
// and its start. Where a device's own counter stood at the last save is in its `before`, if that
// was within this boot. The time from the last save to `now` is missing. Processes are continued
// within one boot; those of an earlier one ended. False: there is no file. Errors: of the file
// system; corrupt for a file that is no saved state. Then nothing is changed.
Result<bool> restore_service_state(const std::filesystem::path& path, std::string_view boot,
                                   RealTime now, analysis::MachineState& state,
                                   analysis::EnergyAccounts& accounts);
// The same from a text; `name` is for errors.
Result<void> restore_service_state_text(std::string_view text, std::string_view name,
                                        std::string_view boot, RealTime now,
                                        analysis::MachineState& state,
                                        analysis::EnergyAccounts& accounts);

}  // namespace jouleprof::session
