// A new, empty recording file, ready to be written to. Private to this folder.
#pragma once

#include <SQLiteCpp/Database.h>

#include <filesystem>
#include <memory>

#include "base/result.h"

namespace jouleprof::recording {

// Makes the file with all tables and a row in `run`. `path` must be absolute. On error nothing is
// left behind. Errors: as Writer::create.
Result<std::unique_ptr<SQLite::Database>> create_database(const std::filesystem::path& path,
                                                          bool overwrite);

}  // namespace jouleprof::recording
