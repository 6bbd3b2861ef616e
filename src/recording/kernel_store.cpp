#include "recording/kernel_store.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <system_error>

#include "base/file.h"
#include "recording/sqlite_file.h"
#include "recording/tables/rows.h"
#include "recording/tables/schema.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;
using model::RememberedKernel;

constexpr int kStoreId = 0x4a504b53;  // "JPKS"
constexpr int kVersion = 1;
constexpr int kPatience = 5000;  // milliseconds
constexpr int kMostRows = 20'000;
constexpr int kMostOfOne = 20;  // signature: it may do work of several sizes
constexpr const char* kSignature =
    "board, driver, kind, name, grid_x, grid_y, grid_z, block_x, block_y, block_z, size_bytes";

std::string create_statement() {
  return fmt::format("CREATE TABLE kernel(driver TEXT NOT NULL, {})", remembered_columns());
}

using Base = std::unique_ptr<SQLite::Database>;

Error foreign(const fs::path& path, Errc code, const std::string& why) {
  return {code, fmt::format("cannot use the remembered kernels in {}: {}. 'jouleprof doctor "
                            "--forget-kernels' removes the file",
                            path.string(), why)};
}

// Runs `use` on the open file; turns what SQLite throws into errors.
template <class T, class Use>
Result<T> with_database(const fs::path& path, int flags, Use use) {
  Base db;
  try {
    db = std::make_unique<SQLite::Database>(path.string(), flags, kPatience);
    set_limits(*db);
    return use(*db);
  } catch (const SQLite::Exception& e) {
    auto error = sqlite_error("read the remembered kernels in " + path.string(), e,
                              db ? db->getHandle() : nullptr);
    if (error.code != Errc::kCorrupt) return tl::unexpected(std::move(error));
    return tl::unexpected(foreign(path, Errc::kCorrupt, "it is damaged"));
  } catch (const std::exception& e) {
    return fail(Errc::kUnavailable, fmt::format("cannot read {}: {}", path.string(), e.what()));
  }
}

Result<void> check(SQLite::Database& db, const fs::path& path) {
  if (db.execAndGet("PRAGMA application_id").getInt() != kStoreId) {
    return tl::unexpected(foreign(path, Errc::kCorrupt, "it is another file"));
  }
  if (const int version = db.execAndGet("PRAGMA user_version").getInt(); version != kVersion) {
    return tl::unexpected(
        foreign(path, Errc::kUnsupported,
                fmt::format("it has version {}, and this tool uses {}", version, kVersion)));
  }
  SQLite::Statement table(db, "SELECT sql FROM sqlite_master WHERE name = 'kernel'");
  if (!table.executeStep() || table.getColumn(0).getString() != create_statement()) {
    return tl::unexpected(foreign(path, Errc::kCorrupt, "its table has other columns"));
  }
  return {};
}

bool is_missing(const fs::path& path) {
  std::error_code ignored;
  const auto size = fs::file_size(path, ignored);
  return ignored || size == 0;  // an empty one was never written
}

// All rows of a driver; every value is checked.
Result<std::vector<RememberedKernel>> rows_of(SQLite::Database& db, const fs::path& path,
                                              const std::string& driver) {
  std::error_code ignored;
  Inspection inspection{static_cast<std::int64_t>(fs::file_size(path, ignored)) + (1 << 20), {}};
  std::vector<RememberedKernel> out;
  for (Rows row(db, inspection, "kernel"); row.next();) {
    const std::string of = row.text();
    auto kernel = take_columns(row);
    if (inspection.good() && of == driver) out.push_back(std::move(kernel));
  }
  if (inspection.good()) return out;
  return tl::unexpected(foreign(path, Errc::kCorrupt, inspection.problem));
}

// The oldest rows beyond the limits.
void shrink(SQLite::Database& db) {
  db.exec(fmt::format(
      "DELETE FROM kernel WHERE rowid IN (SELECT id FROM (SELECT rowid AS id, row_number() OVER "
      "(PARTITION BY {} ORDER BY observed_real_nanoseconds DESC, rowid DESC) AS place FROM kernel) "
      "WHERE place > {})",
      kSignature, kMostOfOne));
  db.exec(
      fmt::format("DELETE FROM kernel WHERE rowid NOT IN (SELECT rowid FROM kernel ORDER BY "
                  "observed_real_nanoseconds DESC, rowid DESC LIMIT {})",
                  kMostRows));
}

}  // namespace

KernelStore::KernelStore(fs::path path, const std::string& driver)
    : path_(std::move(path)), driver_(driver.substr(0, driver.find('.'))) {}

Result<std::vector<RememberedKernel>> KernelStore::find(const model::Recording& recording) const {
  std::vector<RememberedKernel> out;
  if (is_missing(path_)) return out;
  auto all = with_database<std::vector<RememberedKernel>>(
      path_, SQLite::OPEN_READONLY,
      [&](SQLite::Database& db) -> Result<std::vector<RememberedKernel>> {
        if (auto good = check(db, path_); !good) return forward_error(good);
        return rows_of(db, path_, driver_);
      });
  if (!all) return all;
  std::set<std::string_view> boards;
  for (const auto& domain : recording.domains) {
    if (!domain.uuid.empty()) boards.insert(domain.uuid);
  }
  std::set<std::string_view> names;
  for (const auto& trace : recording.traces) {
    for (const auto& kernel : trace.classes) names.insert(kernel.name);
  }
  std::erase_if(*all, [&](const RememberedKernel& k) {
    return !boards.contains(k.board) || !names.contains(k.kernel.name);
  });
  std::ranges::stable_sort(*all, {}, &RememberedKernel::observed);
  return all;
}

Result<void> KernelStore::add(const std::vector<RememberedKernel>& kernels) const {
  if (kernels.empty()) return {};
  std::error_code ignored;  // opening says why
  fs::create_directories(path_.parent_path(), ignored);
  return with_database<void>(
      path_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE,
      [&](SQLite::Database& db) -> Result<void> {
        SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
        if (db.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0) {
          db.exec(create_statement());
          db.exec(fmt::format("PRAGMA application_id = {}", kStoreId));
          db.exec(fmt::format("PRAGMA user_version = {}", kVersion));
        }
        if (auto good = check(db, path_); !good) return good;
        Insert insert(db, "kernel");
        for (const auto& kernel : kernels) {
          if (!is_storable(kernel)) continue;
          insert.add(driver_);
          add_columns(insert, kernel);
          insert.store();
        }
        shrink(db);
        transaction.commit();
        return {};
      });
}

Result<KernelStoreState> kernel_store_state(const fs::path& path) {
  if (is_missing(path)) return KernelStoreState{};
  return with_database<KernelStoreState>(
      path, SQLite::OPEN_READONLY, [&](SQLite::Database& db) -> Result<KernelStoreState> {
        if (auto good = check(db, path); !good) return forward_error(good);
        SQLite::Statement row(
            db, fmt::format("SELECT count(*), count(DISTINCT board), "
                            "(SELECT count(*) FROM (SELECT DISTINCT {} FROM kernel)), "
                            "min(observed_real_nanoseconds), max(observed_real_nanoseconds) "
                            "FROM kernel",
                            kSignature));
        row.executeStep();
        KernelStoreState state;
        const auto number = [&](int column) {
          return static_cast<std::size_t>(row.getColumn(column).getInt64());
        };
        state.rows = number(0);
        state.boards = number(1);
        state.kernels = number(2);
        std::error_code ignored;
        state.bytes = fs::file_size(path, ignored);
        if (state.rows > 0) {
          state.first = RealTime{Duration{row.getColumn(3).getInt64()}};
          state.last = RealTime{Duration{row.getColumn(4).getInt64()}};
        }
        return state;
      });
}

Result<void> forget_kernels(const fs::path& path) {
  std::error_code error;
  remove_side_files(path);
  fs::remove(path, error);
  if (!error) return {};
  return system_failure(fmt::format("cannot remove {}", path.string()), error.value());
}

}  // namespace jouleprof::recording
