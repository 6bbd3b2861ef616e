#include "recording/sweep_file.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/new_file.h"
#include "recording/sqlite_file.h"
#include "recording/sweep_json.h"
#include "recording/tables/packed.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;

constexpr FileKind kSweep{0x4a504653, 1, "a sweep"};  // "JPFS"
constexpr const char* kSchema = R"(
CREATE TABLE sweep (plan TEXT NOT NULL);
CREATE TABLE run (number INTEGER PRIMARY KEY, summary TEXT NOT NULL, recording BLOB);
)";

using Base = std::unique_ptr<SQLite::Database>;

}  // namespace

struct SweepFile::Database {
  // An old file is replaced once a run is in the new one.
  Result<void> take_place() {
    if (!fresh) return {};
    db.reset();  // its journal has its name
    remove_side_files(fresh->target());
    if (auto placed = fresh->take_place(); !placed) return placed;
    fresh.reset();
    auto opened = open_file_of(kSweep, path, SQLite::OPEN_READWRITE);
    if (!opened) return forward_error(opened);
    db = std::move(*opened);
    return {};
  }

  fs::path path;
  std::optional<NewFile> fresh;
  Base db;
};

SweepFile::SweepFile(std::unique_ptr<Database> database) : database_(std::move(database)) {}
SweepFile::SweepFile(SweepFile&&) noexcept = default;
SweepFile::~SweepFile() = default;

bool is_sweep_file(const fs::path& path) {
  return open_file_of(kSweep, path, SQLite::OPEN_READONLY).has_value();
}

Result<SweepRecord> read_sweep(const fs::path& path) {
  const auto db = open_file_of(kSweep, path, SQLite::OPEN_READONLY);
  if (!db) return forward_error(db);
  try {
    auto plan =
        plan_from_json((*db)->execAndGet("SELECT plan FROM sweep").getString(), path.string());
    if (!plan) return forward_error(plan);
    SweepRecord record{std::move(*plan), {}};
    SQLite::Statement rows(**db, "SELECT summary FROM run ORDER BY number");
    while (rows.executeStep()) {
      auto run = run_from_json(rows.getColumn(0).getString(), path.string());
      if (!run) return forward_error(run);
      record.runs.push_back(std::move(*run));
    }
    return record;
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(read_error(path, e, (*db)->getHandle()));
  }
}

Result<void> extract_run(const fs::path& path, unsigned number, const fs::path& to) {
  const auto db = open_file_of(kSweep, path, SQLite::OPEN_READONLY);
  if (!db) return tl::unexpected(db.error());
  try {
    SQLite::Statement row(**db, "SELECT recording FROM run WHERE number = ?");
    row.bind(1, number);
    if (!row.executeStep() || row.getColumn(0).isNull()) {
      return fail(Errc::kNotFound,
                  fmt::format("{} has no recording of a run {}", path.string(), number));
    }
    const auto column = row.getColumn(0);
    const auto bytes = unpack(
        {static_cast<const char*>(column.getBlob()), static_cast<std::size_t>(column.getBytes())});
    if (!bytes) {
      return fail(Errc::kCorrupt,
                  fmt::format("{}: the recording of run {} is damaged", path.string(), number));
    }
    std::ofstream out(to, std::ios::binary);
    out.write(bytes->data(), static_cast<std::streamsize>(bytes->size()));
    out.close();
    if (out) return {};
    return fail(Errc::kUnavailable, fmt::format("cannot write {}", to.string()));
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(read_error(path, e, (*db)->getHandle()));
  }
}

Result<SweepFile> SweepFile::create(const fs::path& path, const model::SweepPlan& plan,
                                    bool overwrite) {
  std::error_code error;
  std::optional<NewFile> fresh;
  if (fs::exists(path, error)) {
    if (!overwrite || !fs::is_regular_file(path, error)) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("{} exists; continue it with --resume, choose another name or use "
                              "--force",
                              path.string()));
    }
    auto made = NewFile::next_to(path);
    if (!made) return forward_error(made);
    fresh.emplace(std::move(*made));
  }
  const fs::path file = fresh ? fresh->path() : path;
  try {
    auto db = std::make_unique<SQLite::Database>(
        file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, 5000);
    SQLite::Transaction transaction(*db);
    mark_as(kSweep, *db);
    db->exec(kSchema);
    SQLite::Statement insert(*db, "INSERT INTO sweep (plan) VALUES (?)");
    insert.bind(1, plan_to_json(plan));
    insert.exec();
    transaction.commit();
    return SweepFile(std::make_unique<Database>(Database{path, std::move(fresh), std::move(db)}));
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(sqlite_error("write " + path.string(), e, nullptr));
  }
}

Result<SweepFile> SweepFile::open(const fs::path& path) {
  auto db = open_file_of(kSweep, path, SQLite::OPEN_READWRITE);
  if (!db) return forward_error(db);
  return SweepFile(std::make_unique<Database>(Database{path, std::nullopt, std::move(*db)}));
}

Result<void> SweepFile::append(const model::SweepRun& run, const fs::path& recording) {
  std::string bytes;
  if (!recording.empty()) {
    auto content = read_file(recording);
    if (!content) return tl::unexpected(content.error());
    bytes = pack(*content);
  }
  try {
    SQLite::Statement insert(*database_->db,
                             "INSERT INTO run (number, summary, recording) VALUES (?, ?, ?)");
    insert.bind(1, run.number);
    insert.bind(2, run_to_json(run));
    if (!recording.empty()) insert.bind(3, bytes.data(), static_cast<int>(bytes.size()));
    insert.exec();
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(
        sqlite_error("write " + database_->path.string(), e, database_->db->getHandle()));
  }
  return database_->take_place();
}

}  // namespace jouleprof::recording
