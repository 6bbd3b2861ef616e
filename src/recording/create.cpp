#include "recording/create.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/file.h"
#include "base/new_file.h"
#include "recording/sqlite_file.h"
#include "recording/tables/schema.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;

struct Created {
  std::unique_ptr<SQLite::Database> db;
  std::string journal;
};

// Makes the file ourselves, so that it is surely new; SQLite then fills it.
Result<void> create_empty(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    Error e = system_error(fmt::format("cannot create {}", path.string()), errno);
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

std::unique_ptr<SQLite::Database> open(const fs::path& path, const std::string& journal_mode) {
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
  return db;
}

std::unique_ptr<SQLite::Database> fill(const fs::path& path, const std::string& journal_mode) {
  auto db = open(path, journal_mode);
  db->exec("BEGIN IMMEDIATE");
  for (const Table& table : tables()) db->exec(table.create_statement());
  db->exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
  db->exec(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
  db->exec("INSERT INTO run VALUES (1, '', '', '', '', NULL, NULL, NULL, NULL, 0)");
  db->exec("COMMIT");
  return db;
}

// A file with all tables, and the journal that worked there. `path` is an empty file.
Result<Created> fill_file(const fs::path& path) {
  const auto try_fill = [&](const char* journal) -> Result<Created> {
    try {
      return Created{fill(path, journal), journal};
    } catch (const SQLite::Exception& e) {
      std::error_code ignored;
      remove_side_files(path);
      fs::resize_file(path, 0, ignored);
      return tl::unexpected(sqlite_error("write " + path.string(), e, nullptr));
    }
  };
  // A write-ahead log lets others read meanwhile. It needs shared memory, which some network file
  // systems do not have; there a rollback journal has to do.
  auto created = try_fill("wal");
  if (!created) created = try_fill("truncate");
  return created;
}

// The old file stays until the new one is whole.
Result<std::unique_ptr<SQLite::Database>> replace_database(const fs::path& path) {
  auto fresh = NewFile::next_to(path);
  if (!fresh) return forward_error(fresh);
  auto created = fill_file(fresh->path());
  if (!created) return forward_error(created);
  created->db.reset();  // which leaves a single file, unless the disk is full by now
  std::error_code ignored;
  const bool is_whole = !fs::exists(side_file(fresh->path(), kWalSuffix), ignored);
  remove_side_files(fresh->path());
  if (!is_whole) {
    return tl::unexpected(system_error(fmt::format("cannot create {}", path.string()), ENOSPC));
  }
  remove_side_files(path);
  if (auto placed = fresh->take_place(); !placed) return forward_error(placed);
  try {
    return open(path, created->journal);
  } catch (const SQLite::Exception& e) {
    remove_side_files(path);
    return tl::unexpected(sqlite_error("write " + path.string(), e, nullptr));
  }
}

}  // namespace

Result<std::unique_ptr<SQLite::Database>> create_database(const Claim& claim) {
  if (claim.replaces()) return replace_database(claim.path());
  if (auto made = create_empty(claim.path()); !made) return forward_error(made);
  auto created = fill_file(claim.path());
  if (created) return std::move(created->db);
  std::error_code ignored;
  fs::remove(claim.path(), ignored);
  return forward_error(created);
}

}  // namespace jouleprof::recording
