// Restoring settings from their records.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "meters/control/board.h"
#include "meters/control/restore_record.h"

namespace jouleprof::meters::control {

enum class Restored {
  kRestored,   // the setting found before holds again
  kUnchanged,  // it already held
  kForeign,    // someone else has changed it since; it was left
};

// Restores the setting and removes the record. The record stays where restoring failed, and where
// it is foreign: until someone has read that, see forget(). Errors: of the driver; unavailable
// where the board does not hold what it was set to.
Result<Restored> restore(const Board& board, RestoreRecord& record,
                         const std::filesystem::path& folder);

// Removes the record of a board.
void forget(const std::filesystem::path& folder, const std::string& uuid);

// What happened, as a sentence: "gpu0: the power limit is 700 W again, as a sweep found it".
std::string describe(const RestoreRecord& record, Restored restored);

struct Leftover {
  std::string device;
  Result<std::string> outcome;  // what was done, or why nothing could be
};

// What is to happen to records that cannot be restored.
enum class Leftovers {
  kRestore,  // those of living owners are passed over; foreign ones stay, and are named
  kSettle,   // those of living owners are named, too; foreign ones are named and forgotten
};

// Restores all records whose owners died, also where the guard of one hangs. Without records it
// costs the listing of one folder. `library`: see NvmlSession::open.
std::vector<Leftover> restore_leftovers(const std::filesystem::path& folder,
                                        const std::string& library,
                                        Leftovers what = Leftovers::kRestore);

}  // namespace jouleprof::meters::control
