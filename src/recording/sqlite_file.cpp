#include "recording/sqlite_file.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstring>

#include "recording/tables/schema.h"

namespace jouleprof::recording {

std::filesystem::path side_file(const std::filesystem::path& path, std::string_view suffix) {
  std::filesystem::path file = path;
  file += suffix;
  return file;
}

void remove_side_files(const std::filesystem::path& path) {
  std::error_code ignored;
  for (const auto suffix : kSideFiles) std::filesystem::remove(side_file(path, suffix), ignored);
}

void set_limits(SQLite::Database& db) {
  sqlite3* handle = db.getHandle();
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kLongestText);
  sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, 100'000);
  sqlite3_limit(handle, SQLITE_LIMIT_COLUMN, 100);
  sqlite3_limit(handle, SQLITE_LIMIT_EXPR_DEPTH, 50);
  sqlite3_limit(handle, SQLITE_LIMIT_VDBE_OP, 25'000);
  sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
}

void mark_as(const FileKind& kind, SQLite::Database& db) {
  db.exec(fmt::format("PRAGMA application_id = {}", kind.application_id));
  db.exec(fmt::format("PRAGMA user_version = {}", kind.newest_version));
}

Result<std::unique_ptr<SQLite::Database>> open_file_of(const FileKind& kind,
                                                       const std::filesystem::path& path,
                                                       int flags) {
  constexpr int kBusyTimeoutMilliseconds = 5000;
  if (std::error_code error; !std::filesystem::is_regular_file(path, error)) {
    return fail(Errc::kNotFound, fmt::format("cannot read {}: no such file", path.string()));
  }
  try {
    auto db = std::make_unique<SQLite::Database>(path.string(), flags, kBusyTimeoutMilliseconds);
    set_limits(*db);
    if (db->execAndGet("PRAGMA application_id").getInt() != kind.application_id) {
      return fail(Errc::kCorrupt, fmt::format("{} is not {}", path.string(), kind.name));
    }
    const int version = db->execAndGet("PRAGMA user_version").getInt();
    if (version > kind.newest_version) {
      return fail(Errc::kUnsupported,
                  fmt::format("{} is {} in format version {}, and this tool reads {}; update "
                              "jouleprof",
                              path.string(), kind.name, version, kind.newest_version));
    }
    return db;
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(read_error(path, e, nullptr));
  }
}

Error sqlite_error(std::string_view trying, const SQLite::Exception& e, sqlite3* db) {
  const int err = db != nullptr ? sqlite3_system_errno(db) : 0;
  const std::string reason = err != 0 ? std::strerror(err) : e.what();
  switch (e.getErrorCode()) {
    case SQLITE_FULL:
      return {Errc::kUnavailable,
              fmt::format("cannot {}: the disk is full; free some space or choose another folder",
                          trying)};
    case SQLITE_IOERR:
      return {
          Errc::kUnavailable,
          fmt::format("cannot {}: {}; check the disk or choose another folder", trying, reason)};
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
      return {Errc::kPermissionDenied,
              fmt::format("cannot {}: {}; choose a folder that you may write to", trying, reason)};
    case SQLITE_CANTOPEN:
      return {
          err == EACCES || err == EPERM ? Errc::kPermissionDenied : Errc::kUnavailable,
          fmt::format("cannot {}: {}; check that the file, those named like it that end in -wal "
                      "and -shm, and their folder can be read",
                      trying, reason)};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {
          Errc::kUnavailable,
          fmt::format("cannot {}: another program holds it; try again when that is done", trying)};
    case SQLITE_NOMEM:
      return {Errc::kUnavailable, fmt::format("cannot {}: out of memory", trying)};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {Errc::kCorrupt, fmt::format("cannot {}: the file is damaged ({})", trying, e.what())};
    default:
      return {Errc::kInternal, fmt::format("cannot {}: {}", trying, e.what())};
  }
}

Error read_error(const std::filesystem::path& path, const SQLite::Exception& e, sqlite3* db) {
  // What SQLite makes of damage has many codes, and "out of memory" is one of them.
  if (e.getErrorCode() == SQLITE_NOMEM) {
    return {Errc::kCorrupt,
            fmt::format("cannot read {}: the file is damaged, or the memory does not "
                        "suffice for it",
                        path.string())};
  }
  Error error = sqlite_error("read " + path.string(), e, db);
  if (error.code == Errc::kInternal) {
    error = {Errc::kCorrupt,
             fmt::format("cannot read {}: the file is damaged ({})", path.string(), e.what())};
  }
  return error;
}

}  // namespace jouleprof::recording
