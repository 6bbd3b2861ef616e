#include "recording/create.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/file.h"
#include "recording/schema.h"
#include "recording/sqlite_file.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;

// Makes the file ourselves, so that it is surely new; SQLite then fills it.
Result<void> create_empty(const fs::path& path, bool overwrite) {
  const std::string trying = fmt::format("cannot create {}", path.string());
  std::error_code ignored;
  const fs::file_status there = fs::symlink_status(path, ignored);
  if (fs::is_directory(there)) {
    return fail(Errc::kInvalidArgument, fmt::format("{}: it is a folder; name a file", trying));
  }
  if (fs::exists(there)) {
    if (!overwrite) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("{}: it exists; choose another name or allow overwriting", trying));
    }
    if (!fs::is_regular_file(path, ignored)) {
      return fail(
          Errc::kInvalidArgument,
          fmt::format("{}: what is there is not an ordinary file; choose another name", trying));
    }
    if (::unlink(path.c_str()) != 0) return tl::unexpected(system_error(trying, errno));
  }
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    Error e = system_error(trying, errno);
    if (e.code == Errc::kNotFound) e.message += "; create its folder first";
    if (e.code == Errc::kPermissionDenied) e.message += "; choose a folder that you may write to";
    return tl::unexpected(std::move(e));
  }
  ::close(fd);
  // Left over from an earlier file of this name, they would be taken for this one's.
  remove_side_files(path);
  return {};
}

// Long enough for a reader to finish; no longer, because sampling waits meanwhile.
constexpr int kBusyTimeoutMilliseconds = 2000;

std::unique_ptr<SQLite::Database> fill(const fs::path& path, const std::string& journal_mode) {
  auto db = std::make_unique<SQLite::Database>(
      path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_NOMUTEX, kBusyTimeoutMilliseconds);
  set_limits(*db);
  // Never wait for the disk: a stalled one must not stall the sampling. What is committed outlives
  // this process whenever it dies; only the death of the machine can take it.
  db->exec("PRAGMA synchronous = OFF");
  db->exec("PRAGMA cache_size = -256");
  db->exec("PRAGMA foreign_keys = ON");
  const std::string got = db->execAndGet("PRAGMA journal_mode = " + journal_mode).getString();
  if (got != journal_mode) throw SQLite::Exception("no such journal here", SQLITE_IOERR);
  // Each commit is copied into the main file at once: it says what it is from the start, and is
  // never far behind.
  db->exec("PRAGMA wal_autocheckpoint = 1");
  db->exec("BEGIN IMMEDIATE");
  for (const Table& table : tables()) db->exec(table.create_statement());
  db->exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
  db->exec(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
  db->exec("INSERT INTO run VALUES (1, '', '', '', '', NULL, NULL, NULL, NULL, 0)");
  db->exec("COMMIT");
  return db;
}

}  // namespace

Result<std::unique_ptr<SQLite::Database>> create_database(const fs::path& path, bool overwrite) {
  if (auto made = create_empty(path, overwrite); !made) return forward_error(made);
  const auto try_fill = [&](const char* journal) -> Result<std::unique_ptr<SQLite::Database>> {
    try {
      return fill(path, journal);
    } catch (const SQLite::Exception& e) {
      std::error_code ignored;
      remove_side_files(path);
      fs::resize_file(path, 0, ignored);
      return tl::unexpected(sqlite_error("write " + path.string(), e, nullptr));
    }
  };
  // A write-ahead log lets others read meanwhile. It needs shared memory, which some network file
  // systems do not have; there a rollback journal has to do.
  auto db = try_fill("wal");
  if (!db) db = try_fill("truncate");
  if (!db) {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  return db;
}

}  // namespace jouleprof::recording
