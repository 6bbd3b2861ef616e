#include "recording/merge/merger.h"

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "recording/claim.h"
#include "recording/merge/merged_base.h"
#include "recording/merge/merged_file.h"
#include "recording/open.h"
#include "recording/reader.h"
#include "recording/sqlite_file.h"
#include "recording/tables/packed.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;

std::int64_t checksum(std::string_view bytes) {
  return static_cast<std::int64_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// The bytes of a recording whose writer was killed, with what is in its write-ahead log only.
// Errors: unavailable while it is written.
Result<std::string> bytes_of_cut_off(const fs::path& path, bool is_claimed) {
  std::optional<Result<Claim>> claim;
  if (!is_claimed) claim = Claim::take(path, true);
  if (claim && !*claim) {
    return fail(Errc::kUnavailable,
                fmt::format("{} is still written to, or cannot be locked ({}); merge it when the "
                            "run has ended",
                            path.string(), claim->error().message));
  }
  const auto source = open_recording(path);
  if (!source) return forward_error(source);
  const auto file = TemporaryRecording::create();
  if (!file) return forward_error(file);
  try {
    SQLite::Database copy(file->path().string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    SQLite::Backup(copy, *source->db).executeStep();
    copy.exec("PRAGMA journal_mode = DELETE");
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(read_error(path, e, nullptr));
  }
  return read_file(file->path());
}

// Writes parts into a new file.
class Merger {
 public:
  explicit Merger(SQLite::Database& db)
      : db_(db),
        insert_(db,
                "INSERT INTO part (name, host, boot_id, length_bytes, crc32, recording) "
                "VALUES (?, ?, ?, ?, ?, ?)"),
        same_(db, "SELECT name, recording FROM part WHERE crc32 = ? AND length_bytes = ?") {}

  Result<void> add_file(const MergeInput& input) {
    const fs::path& path = input.file;
    if (is_merged_file(path)) return add_merged(path);
    auto recording = read_recording(path);
    if (!recording) return forward_error(recording);
    std::error_code error;
    const bool has_log = fs::exists(side_file(path, kWalSuffix), error);
    const auto bytes = has_log ? bytes_of_cut_off(path, input.is_claimed) : read_file(path);
    if (!bytes) return forward_error(bytes);
    const std::string name = input.name.empty() ? path.filename().string() : input.name;
    return add({name, recording->run.host, recording->run.boot_id}, *bytes, path.string());
  }

  std::size_t count() const { return count_; }

 private:
  Result<void> add_merged(const fs::path& path) {
    const auto db = open_merged(path);
    if (!db) return forward_error(db);
    SQLite::Statement rows(
        **db, std::string("SELECT name, host, boot_id, recording FROM part") + kPartOrder);
    while (rows.executeStep()) {
      const auto bytes = unpack(blob_of(rows.getColumn(3)));
      const MergedPart part{rows.getColumn(0), rows.getColumn(1), rows.getColumn(2)};
      if (!bytes) {
        return fail(Errc::kCorrupt,
                    fmt::format("{}: the recording {} is damaged", path.string(), part.name));
      }
      if (auto added = add(part, *bytes, path.string()); !added) return added;
    }
    return {};
  }

  Result<void> add(const MergedPart& part, const std::string& bytes, const std::string& file) {
    const std::int64_t check = checksum(bytes);
    const auto length = static_cast<std::int64_t>(bytes.size());
    same_.reset();
    same_.bind(1, check);
    same_.bind(2, length);
    while (same_.executeStep()) {
      const auto other = unpack(blob_of(same_.getColumn(1)));
      if (!other || *other != bytes) continue;
      return fail(Errc::kInvalidArgument,
                  fmt::format("{} holds the same recording twice, or one that was merged before "
                              "({}): its energy would count twice; leave it out",
                              file, same_.getColumn(0).getString()));
    }
    const std::string packed = pack(bytes);
    insert_.reset();
    insert_.bind(1, part.name);
    insert_.bind(2, part.host);
    insert_.bind(3, part.boot_id);
    insert_.bind(4, length);
    insert_.bind(5, check);
    insert_.bind(6, packed.data(), static_cast<int>(packed.size()));
    insert_.exec();
    ++count_;
    return {};
  }

  SQLite::Database& db_;
  SQLite::Statement insert_;
  SQLite::Statement same_;
  std::size_t count_ = 0;
};

}  // namespace

Result<std::size_t> write_merged(const std::vector<MergeInput>& inputs, const fs::path& output) {
  try {
    SQLite::Database db(output.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, 5000);
    SQLite::Transaction transaction(db);
    make_merged_tables(db);
    std::size_t count = 0;
    {
      Merger merger(db);
      for (const auto& input : inputs) {
        if (auto added = merger.add_file(input); !added) return forward_error(added);
      }
      count = merger.count();
    }
    transaction.commit();
    return count;
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(sqlite_error("write " + output.string(), e, nullptr));
  }
}

}  // namespace jouleprof::recording
