// A new, empty recording file, ready to be written to. Private to this folder.
#pragma once

#include <SQLiteCpp/Database.h>

#include <memory>

#include "base/result.h"
#include "recording/claim.h"

namespace jouleprof::recording {

// Makes the file with all tables and a row in `run`. On error nothing is left behind, and an old
// file stays. Errors: as Writer::create.
Result<std::unique_ptr<SQLite::Database>> create_database(const Claim& claim);

}  // namespace jouleprof::recording
