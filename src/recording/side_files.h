// Files that SQLite makes next to a recording while it is written.
#pragma once

#include <filesystem>

namespace jouleprof::recording {

// After an unfinished recording, or before another file takes its name: they would be taken for its
// own.
void remove_side_files(const std::filesystem::path& path);

}  // namespace jouleprof::recording
