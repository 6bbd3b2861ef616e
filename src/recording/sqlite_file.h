// SQLite files of this folder: opening them, their side files, their limits and errors. Private to
// this folder.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "recording/claim.h"

namespace jouleprof::recording {

// After an unfinished recording, or before another file takes its name: they would be taken for its
// own.
void remove_side_files(const std::filesystem::path& path);

// --- Names of SQLite's side files, limits, and its errors as ours ---

inline constexpr std::string_view kWalSuffix = "-wal";
inline constexpr std::string_view kLockSuffix = "-lock";  // of Claim; not SQLite's

std::filesystem::path side_file(const std::filesystem::path& path, std::string_view suffix);

// No text longer than kLongestText, no statement of unreasonable size, no attached files; views,
// triggers and functions that a file brings along do nothing.
void set_limits(SQLite::Database& db);

// A file of one kind: what stands in its header, its name in messages ("a sweep"), and the command
// that writes it.
struct FileKind {
  int application_id;
  int newest_version;
  std::string_view name;
  std::string_view writer;
};

inline constexpr FileKind kMerged{0x4a504d47, 1, "a merged recording",
                                  "jouleprof merge"};                           // "JPMG"
inline constexpr FileKind kSweep{0x4a504653, 1, "a sweep", "jouleprof sweep"};  // "JPFS"

// Makes an empty database one of that kind. Throws SQLite::Exception.
void mark_as(const FileKind& kind, SQLite::Database& db);

// Opens a file of that kind. `flags`: of SQLite::Database. Errors: not_found; corrupt where it is
// damaged or no ordinary file; unsupported for another kind and for a newer version.
Result<std::unique_ptr<SQLite::Database>> open_file_of(const FileKind& kind,
                                                       const std::filesystem::path& path,
                                                       int flags);

// The error of a failed SQLite call. `trying` is "write /x" or "read /x". `db` may be null.
Error sqlite_error(std::string_view trying, const SQLite::Exception& e, sqlite3* db);

// The error of a failed SQLite call while a file is read: what SQLite cannot make sense
// of is damage. `db` may be null.
Error read_error(const std::filesystem::path& path, const SQLite::Exception& e, sqlite3* db);

// Writes the bytes of a file that another holds. Errors: unavailable.
Result<void> write_bytes(const std::filesystem::path& path, std::string_view bytes);

// --- Opening a recording that may be complete, cut off, being written, unwritable or hostile ---

struct OpenFile {
  std::filesystem::path path;            // absolute, no links
  std::uint64_t bytes = 0;               // with its write-ahead log
  std::unique_ptr<SQLite::Database> db;  // within a read transaction: what it shows stays the same
};

// Opens a recording of this schema version for reading, with limits set on what it can
// make SQLite do. Never writes to a file that has nothing to recover. Errors: as read_recording.
Result<OpenFile> open_recording(const std::filesystem::path& path);

// A new, empty recording file, ready to be written to.
// Makes the file with all tables and a row in `run`. On error nothing is left behind, and an old
// file stays. Errors: as Writer::create.
Result<std::unique_ptr<SQLite::Database>> create_database(const Claim& claim);

}  // namespace jouleprof::recording
