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

// Restores the setting and removes the record. The record stays where restoring failed. Errors: of
// the driver; unavailable where the board does not hold what it was set to.
Result<Restored> restore(const Board& board, const RestoreRecord& record,
                         const std::filesystem::path& folder);

// What happened, as a sentence: "gpu0: the power limit is 700 W again, as a sweep found it".
std::string describe(const RestoreRecord& record, Restored restored);

struct Leftover {
  std::string device;
  Result<std::string> outcome;  // what was done, or why nothing could be
};

// Restores all records whose owners died. Those of living owners are left. Without records it costs
// the listing of one folder. `library`: see NvmlSession::open.
std::vector<Leftover> restore_leftovers(const std::filesystem::path& folder,
                                        const std::string& library);

}  // namespace jouleprof::meters::control
