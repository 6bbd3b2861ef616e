// Opening a recording that may be complete, cut off, being written, unwritable or hostile. Private
// to this folder.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/result.h"
#include "recording/claim.h"

namespace jouleprof::recording {

struct OpenFile {
  std::filesystem::path path;            // absolute, no links
  std::uint64_t bytes = 0;               // with its write-ahead log
  std::unique_ptr<SQLite::Database> db;  // within a read transaction: what it shows stays the same
};

// Opens a recording of this schema version for reading, with limits set on what it can
// make SQLite do. Never writes to a file that has nothing to recover. Errors: as read_recording.
Result<OpenFile> open_recording(const std::filesystem::path& path);

// A new, empty recording file, ready to be written to. Private to this folder.

// Makes the file with all tables and a row in `run`. On error nothing is left behind, and an old
// file stays. Errors: as Writer::create.
Result<std::unique_ptr<SQLite::Database>> create_database(const Claim& claim);

}  // namespace jouleprof::recording
