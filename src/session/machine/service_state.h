// The counters of a service, kept over its restarts.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <utility>

#include "analysis/live/machine_state.h"
#include "base/file.h"
#include "base/result.h"

namespace jouleprof::session {

// The counters, with all text in UTF-8. `boot`: of the running kernel (spans::boot_id).
nlohmann::json service_state(const analysis::MachineState& state,
                             const analysis::EnergyAccounts& accounts, std::string_view boot);

// Continues the counters of an earlier service. Devices are found by UUID, or where they have none
// by their name. What a device had that is not there now goes on when it is back: its total, and
// what its entities had as energy of ended ones. `state` has the domains of its snapshot and its
// start. Where a device's own counter stood at the last save is in its `before`, if that was within
// this boot. The time from the last save to `now` is missing. Processes are continued within one
// boot; those of an earlier one ended. Errors: corrupt for what no service has made, which `name`
// then names. Nothing is changed then.
Result<void> restore_service_state(const nlohmann::json& saved, std::string_view name,
                                   std::string_view boot, RealTime now,
                                   analysis::MachineState& state,
                                   analysis::EnergyAccounts& accounts);

// The file in which a service keeps its counters.
// A file of members of gzip, each a line of JSON: a state, and then what changed in it from save to
// save, as patches (RFC 6902). After a crash it has the state of the last save, or of the one
// before if that was cut off. A member that is damaged while others follow it makes the file
// corrupt: counters that fell to an earlier state would look like a restart that never was.
// Thread safety: none.
class StateFile {
 public:
  // What is there is replaced at the first save, and from then on whenever the patches are long.
  // Where it is a symbolic link, that is the file that the link names.
  explicit StateFile(std::filesystem::path path) : path_(without_links(std::move(path))) {}

  // The latest state at `path`; null: there is no file. Also of plain JSON. Errors: of the
  // file system; corrupt.
  static Result<nlohmann::json> read(const std::filesystem::path& path);

  // On the disk when it returns. All text in `state` is UTF-8. Errors: of the file system; the file
  // then has the state of an earlier save.
  Result<void> save(nlohmann::json state);

 private:
  const std::filesystem::path path_;
  // The state that was saved; nullptr: none, or the file may have a part of another.
  std::shared_ptr<const nlohmann::json> last_;
  std::size_t size_ = 0;   // of the file
  std::size_t whole_ = 0;  // of its first member
};

}  // namespace jouleprof::session
