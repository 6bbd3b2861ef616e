#include "recording/sqlite_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/text.h"
#include "recording/tables/schema.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;

constexpr int kBusyTimeoutMilliseconds = 2000;

tl::unexpected<Error> corrupt(const fs::path& path, std::string_view what) {
  return fail(Errc::kCorrupt, fmt::format("{} {}", path.string(), what));
}

// Where the file really is, if it can be read at all. `name`: of what it is to be.
Result<fs::path> locate(const fs::path& path, std::string_view name) {
  const std::string trying = fmt::format("cannot read {}", path.string());
  std::error_code err;
  // A pipe of the shell's <(...) has a type, and no path.
  const auto type = fs::status(path, err).type();
  if (type == fs::file_type::directory) {
    return corrupt(path, fmt::format("is a folder, not {}", name));
  }
  if (type == fs::file_type::fifo) return corrupt(path, "is a pipe; write it to a file first");
  if (fs::exists(fs::file_status(type)) && type != fs::file_type::regular) {
    return corrupt(path, "is not an ordinary file");
  }
  const fs::path real = fs::canonical(path, err);
  if (err) return system_failure(trying, err.value());
  if (::faccessat(AT_FDCWD, real.c_str(), R_OK, AT_EACCESS) != 0) {
    return system_failure(trying, errno);
  }
  return real;
}

// The first bytes of a database file, as the file format's section 1.3 has them
// (https://www.sqlite.org/fileformat2.html#the_database_header).
class Header {
 public:
  // Read through SQLite: closing a descriptor of our own would drop the locks that a Writer of this
  // very process may hold on the file.
  explicit Header(SQLite::Database& db) {
    sqlite3_file* file = nullptr;
    sqlite3_file_control(db.getHandle(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (file == nullptr || file->pMethods == nullptr) return;
    sqlite3_int64 size = 0;
    if (file->pMethods->xFileSize(file, &size) != SQLITE_OK) return;
    empty_ = size == 0;
    file->pMethods->xRead(file, bytes_.data(), static_cast<int>(bytes_.size()), 0);
    const std::uint32_t page = word(14) & 0xffff;  // 1: 65536 bytes
    whole_pages_ = page != 0 && size % (page == 1 ? 65536 : page) == 0;
  }

  bool empty() const { return empty_; }
  bool is_sqlite() const { return std::memcmp(bytes_.data(), "SQLite format 3", 16) == 0; }
  bool is_begun() const { return is_sqlite() && application_id() == 0 && user_version() == 0; }
  bool uses_wal() const { return bytes_[19] == 2; }
  // SQLite itself reads the missing bytes of the last page as zeros.
  bool whole_pages() const { return whole_pages_; }
  std::int32_t user_version() const { return static_cast<std::int32_t>(word(60)); }
  std::int32_t application_id() const { return static_cast<std::int32_t>(word(68)); }

 private:
  std::uint32_t word(std::size_t at) const {
    std::uint32_t value = 0;
    for (std::size_t i = at; i < at + 4; ++i) value = value << 8 | bytes_[i];
    return value;
  }

  std::array<unsigned char, 100> bytes_{};
  bool empty_ = false;
  bool whole_pages_ = true;
};

// Of a damaged file, of which no figure is sure.
constexpr std::string_view kRemedy = "copy it again from where it was written, or record again";

Result<void> nothing_in(const fs::path& path) {
  return corrupt(path, "is empty: the recording was cut off as it began");
}

Result<void> check_identity(const fs::path& path, std::int32_t application_id,
                            std::int32_t user_version) {
  for (const FileKind* other : {&kMerged, &kSweep}) {
    if (application_id != other->application_id) continue;
    const auto whole = open_file_of(*other, path, SQLite::OPEN_READONLY);
    if (!whole) return forward_error(whole);
    return fail(Errc::kUnsupported,
                fmt::format("{} is {}, not a recording", path.string(), other->name));
  }
  if (application_id != kApplicationId) {
    return fail(Errc::kUnsupported, fmt::format("{} is not a jouleprof recording; logs of other "
                                                "tools are read by jouleprof import",
                                                path.string()));
  }
  if (user_version < 1) return corrupt(path, "is damaged: it has no schema version");
  if (user_version != kSchemaVersion) {
    return fail(Errc::kUnsupported,
                fmt::format("{} has schema version {}, and this jouleprof reads version {}; "
                            "read it with the jouleprof that wrote it",
                            path.string(), user_version, kSchemaVersion));
  }
  return {};
}

Result<void> check_header(const fs::path& path, const Header& header) {
  if (header.empty()) return nothing_in(path);
  if (header.is_begun()) return {};
  return check_identity(path, header.is_sqlite() ? header.application_id() : 0,
                        header.user_version());
}

// A recorder that died as it began left a header without an identity. The log may have it, with the
// tables.
Result<void> check_begun(const fs::path& path, SQLite::Database& db) {
  if (db.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0) return nothing_in(path);
  return check_identity(path, db.execAndGet("PRAGMA application_id").getInt(),
                        db.execAndGet("PRAGMA user_version").getInt());
}

// A URI, because only that can say immutable.
std::string uri(const fs::path& path, std::string_view query) {
  std::string text = "file:";
  for (const char c : path.string()) {
    if (c == '%' || c == '?' || c == '#') {
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      text += c;
    }
  }
  return text.append(query);
}

// One way of opening the file.
struct Way {
  const char* query = "";
  int flags = SQLite::OPEN_READONLY;
  bool alone = false;  // without locks and shared memory
};

std::unique_ptr<SQLite::Database> open_file(const fs::path& path, const Way& way) {
  auto db = std::make_unique<SQLite::Database>(
      uri(path, way.query), way.flags | SQLite::OPEN_URI | SQLite::OPEN_NOMUTEX,
      kBusyTimeoutMilliseconds, way.alone ? "unix-none" : "");
  set_limits(*db);
  return db;
}

// Begins the transaction in which everything is read, which is where it shows whether this way
// works.
void begin(SQLite::Database& db, const Way& way) {
  if (way.alone) db.exec("PRAGMA locking_mode = EXCLUSIVE");
  db.exec("PRAGMA cell_size_check = ON");
  db.exec("PRAGMA mmap_size = 0");
  db.exec("BEGIN");
  db.execAndGet("SELECT count(*) FROM sqlite_master");
}

// The next way to try after `code` came of `way`.
std::optional<Way> after(const Way& way, int code) {
  // A rollback journal left by a writer that died has to be played back, which is writing.
  if (code == SQLITE_READONLY_ROLLBACK) {
    return Way{.query = "", .flags = SQLite::OPEN_READWRITE};
  }
  // A write-ahead log without its shared memory, and no right to make that: read it on our own.
  if (!way.alone && ((code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY)) {
    return Way{.query = "", .flags = SQLite::OPEN_READONLY, .alone = true};
  }
  return std::nullopt;
}

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
  db->exec("INSERT INTO run VALUES (1, '', '', '', '', NULL, NULL, NULL, NULL, 0, NULL)");
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
  if (!is_whole) return system_failure(fmt::format("cannot create {}", path.string()), ENOSPC);
  remove_side_files(path);
  if (auto placed = fresh->take_place(); !placed) return forward_error(placed);
  try {
    return open(path, created->journal);
  } catch (const SQLite::Exception& e) {
    remove_side_files(path);
    return tl::unexpected(sqlite_error("write " + path.string(), e, nullptr));
  }
}

constexpr std::string_view kJournalSuffix = "-journal";
constexpr std::array<std::string_view, 3> kSideFiles{kWalSuffix, "-shm", kJournalSuffix};

}  // namespace

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
  constexpr int kPatienceMilliseconds = 5000;
  if (const auto found = locate(path, kind.name); !found) return forward_error(found);
  const auto another = [&] {
    return fail(Errc::kUnsupported,
                fmt::format("{} is not {}; {} writes one", path.string(), kind.name, kind.writer));
  };
  try {
    auto db = std::make_unique<SQLite::Database>(path.string(), flags, kPatienceMilliseconds);
    set_limits(*db);
    if (db->execAndGet("PRAGMA application_id").getInt() != kind.application_id) {
      return another();
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
    if (e.getErrorCode() == SQLITE_NOTADB) return another();
    if (e.getExtendedErrorCode() == SQLITE_READONLY_ROLLBACK && flags == SQLite::OPEN_READONLY) {
      return open_file_of(kind, path, SQLite::OPEN_READWRITE);  // plays the journal back
    }
    return tl::unexpected(read_error(path, e, nullptr));
  }
}

Error sqlite_error(std::string_view trying, const SQLite::Exception& e, sqlite3* db) {
  const int err = db != nullptr ? sqlite3_system_errno(db) : 0;
  const std::string said = one_line(e.what());
  const std::string reason = err != 0 ? std::strerror(err) : said;
  switch (e.getErrorCode()) {
    case SQLITE_FULL:
      return {Errc::kUnavailable,
              fmt::format("cannot {}: the disk is full; free some space or choose another folder",
                          trying)};
    case SQLITE_IOERR: {
      rlimit limit{};
      const bool limited =
          ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
      return {Errc::kUnavailable,
              fmt::format("cannot {}: {}; {}check the disk or choose another folder", trying,
                          reason, limited ? "raise the limit of a file's size (ulimit -f), " : "")};
    }
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
      return {Errc::kCorrupt,
              fmt::format("cannot {}: the file is damaged ({}); {}", trying, said, kRemedy)};
    default:
      return {Errc::kInternal, fmt::format("cannot {}: {}", trying, said)};
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
    error = {Errc::kCorrupt, fmt::format("cannot read {}: the file is damaged ({}); {}",
                                         path.string(), one_line(e.what()), kRemedy)};
  }
  return error;
}

Result<void> write_bytes(const fs::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) return fail(Errc::kUnavailable, "cannot write " + path.string());
  return {};
}

Result<OpenFile> open_recording(const fs::path& path) {
  auto real = locate(path, "a recording");
  if (!real) return forward_error(real);
  OpenFile file;
  file.path = *real;
  Way way;
  for (;;) {
    try {
      file.db = open_file(*real, way);
      const Header header(*file.db);
      if (auto fine = check_header(path, header); !fine) return forward_error(fine);
      std::error_code err;
      const auto log_bytes = fs::file_size(side_file(*real, kWalSuffix), err);
      // Next to a journal, a write may be under way.
      if (err && !fs::exists(side_file(*real, kJournalSuffix)) && !header.whole_pages()) {
        return corrupt(path, fmt::format("is damaged: its end is missing; {}", kRemedy));
      }
      if (err && header.uses_wal()) {
        // The main file on its own is whole. Opened as usual it would get new side files.
        way.query = "?immutable=1";
        file.db = open_file(*real, way);
      }
      file.bytes = fs::file_size(*real, err) + (err ? 0 : log_bytes);
      begin(*file.db, way);
      if (header.is_begun()) {
        if (auto fine = check_begun(path, *file.db); !fine) return forward_error(fine);
      }
      return file;
    } catch (const SQLite::Exception& e) {
      const auto next = after(way, e.getExtendedErrorCode());
      if (!next) {
        return tl::unexpected(read_error(path, e, file.db ? file.db->getHandle() : nullptr));
      }
      way = *next;
    }
  }
}

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
