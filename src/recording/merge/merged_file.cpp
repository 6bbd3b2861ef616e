#include "recording/merge/merged_file.h"

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "recording/claim.h"
#include "recording/reader.h"
#include "recording/sqlite_file.h"
#include "recording/sweep_file.h"
#include "recording/tables/rows.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;

using MergedBase = std::unique_ptr<SQLite::Database>;

constexpr const char* kTemporaryName = "part.jprof";
// For SELECT ... FROM part: recordings of one machine follow each other.
constexpr const char* kPartOrder = " ORDER BY boot_id, host, name, crc32, length_bytes";

constexpr const char* kSchema = R"(
CREATE TABLE part (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  host TEXT NOT NULL,
  boot_id TEXT NOT NULL,
  length_bytes INTEGER NOT NULL,
  crc32 INTEGER NOT NULL,
  recording BLOB NOT NULL
);
CREATE INDEX part_content ON part (crc32, length_bytes);
)";

// For reading. Errors: not_found; corrupt where it is damaged; unsupported for another kind and a
// newer one.
Result<MergedBase> open_merged(const fs::path& path) {
  return open_file_of(kMerged, path, SQLite::OPEN_READONLY);
}

// The recording that a part is.
Result<model::Recording> recording_of(std::string_view bytes) {
  const auto folder = TemporaryFolder::create();
  if (!folder) return forward_error(folder);
  const fs::path file = folder->path() / kTemporaryName;
  if (auto written = write_bytes(file, bytes); !written) return forward_error(written);
  return read_recording(file);
}

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
  const auto folder = TemporaryFolder::create();
  if (!folder) return forward_error(folder);
  const fs::path file = folder->path() / kTemporaryName;
  try {
    SQLite::Database copy(file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    SQLite::Backup(copy, *source->db).executeStep();
    copy.exec("PRAGMA journal_mode = DELETE");
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(read_error(path, e, nullptr));
  }
  return read_file(file);
}

struct MergeInput {
  std::filesystem::path file;  // a recording or a merged file
  std::string name = {};       // of a recording's part; empty: the file's, without its folder
  bool is_claimed = false;     // by the caller
};

// Writes parts into a new file.
class Merger {
 public:
  Merger(SQLite::Database& db, const OfRecording& each)
      : each_(each),
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
    if (each_) each_(name, *recording);
    return add({name, recording->run.host, recording->run.boot_id}, *bytes, path.string());
  }

  std::size_t count() const { return count_; }

 private:
  Result<void> add_merged(const fs::path& path) {
    const auto db = open_merged(path);
    if (!db) return forward_error(db);
    std::optional<SQLite::Statement> rows;
    // Damage of this file is none of the file that is written.
    const auto next = [&]() -> Result<bool> {
      try {
        if (!rows) {
          rows.emplace(**db,
                       std::string("SELECT name, host, boot_id, recording FROM part") + kPartOrder);
        }
        return rows->executeStep();
      } catch (const SQLite::Exception& e) {
        return tl::unexpected(read_error(path, e, (*db)->getHandle()));
      }
    };
    for (;;) {
      const auto more = next();
      if (!more) return forward_error(more);
      if (!*more) return {};
      const auto bytes = unpack(rows->getColumn(3));
      const MergedPart part{rows->getColumn(0), rows->getColumn(1), rows->getColumn(2)};
      if (!bytes) {
        return fail(Errc::kCorrupt,
                    fmt::format("{}: the recording {} is damaged", path.string(), part.name));
      }
      if (auto added = add(part, *bytes, path.string()); !added) return added;
      if (!each_) continue;
      const auto recording = recording_of(*bytes);
      if (!recording) return forward_error(recording);
      each_(part.name, *recording);
    }
  }

  Result<void> add(const MergedPart& part, const std::string& bytes, const std::string& file) {
    const std::int64_t check = checksum(bytes);
    const auto length = static_cast<std::int64_t>(bytes.size());
    same_.reset();
    same_.bind(1, check);
    same_.bind(2, length);
    while (same_.executeStep()) {
      const auto other = unpack(same_.getColumn(1));
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

  const OfRecording& each_;
  SQLite::Statement insert_;
  SQLite::Statement same_;
  std::size_t count_ = 0;
};

std::string part_name(const fs::path& file, std::size_t number) {
  return fmt::format("{}-{:04}{}", file.stem().string(), number, file.extension().string());
}

// The names of the parts that `file` has; of a recording, the one that it will get.
Result<std::vector<std::string>> part_names(const fs::path& file) {
  if (!is_merged_file(file)) return std::vector{part_name(file, 1)};
  const auto parts = merged_parts(file);
  if (!parts) return forward_error(parts);
  std::vector<std::string> names;
  for (const auto& part : *parts) names.push_back(part.name);
  return names;
}

Result<Claim> claim_of(const fs::path& file) {
  auto claim = Claim::take(file, true);
  if (claim) return claim;
  return fail(Errc::kUnavailable,
              fmt::format("cannot append to {}: {}", file.string(), claim.error().message));
}

// Writes the recordings of `inputs` into the empty file `output`. Returns how many they are.
// `each`, `is_of_output` and errors: as merge_recordings'.
Result<std::size_t> write_merged(const std::vector<MergeInput>& inputs, const fs::path& output,
                                 const OfRecording& each, bool& is_of_output) {
  try {
    SQLite::Database db(output.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, 5000);
    SQLite::Transaction transaction(db);
    mark_as(kMerged, db);
    db.exec(kSchema);
    std::size_t count = 0;
    {
      Merger merger(db, each);
      for (const auto& input : inputs) {
        if (auto added = merger.add_file(input); !added) return forward_error(added);
      }
      count = merger.count();
    }
    transaction.commit();
    return count;
  } catch (const SQLite::Exception& e) {
    is_of_output = true;
    return tl::unexpected(sqlite_error("write " + output.string(), e, nullptr));
  }
}

// write_merged() in place of the file that `claim` names, which stays as it was where that fails.
Result<std::size_t> replace_with_merged(const std::vector<MergeInput>& inputs, const Claim& claim,
                                        const OfRecording& each, bool& is_of_output) {
  is_of_output = true;
  auto fresh = NewFile::next_to(claim.path());
  if (!fresh) return forward_error(fresh);
  is_of_output = false;
  auto written = write_merged(inputs, fresh->path(), each, is_of_output);
  remove_side_files(fresh->path());
  if (!written) return written;
  remove_side_files(claim.path());
  is_of_output = true;
  if (auto placed = fresh->take_place(); !placed) return forward_error(placed);
  return written;
}

}  // namespace

bool is_one_machine(const MergedPart& a, const MergedPart& b) {
  return a.boot_id == b.boot_id && (!a.boot_id.empty() || (!a.host.empty() && a.host == b.host));
}

bool is_merged_file(const fs::path& path) { return open_merged(path).has_value(); }

Result<std::size_t> merge_recordings(const std::vector<fs::path>& inputs, const fs::path& output,
                                     bool overwrite, const OfRecording& each, bool* is_of_output) {
  bool ignored = false;
  bool& of_output = is_of_output != nullptr ? *is_of_output : ignored;
  of_output = false;
  std::error_code error;
  if (!overwrite && fs::exists(output, error)) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{} exists; choose another name or use --force", output.string()));
  }
  for (const auto& input : inputs) {
    if (is_same_file(input, output)) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("{} is an input and the output", output.string()));
    }
  }
  const auto claim = Claim::take(output, overwrite);
  if (!claim) return forward_error(claim);
  std::vector<MergeInput> files;
  for (const auto& input : inputs) files.push_back({input});
  return replace_with_merged(files, *claim, each, of_output);
}

Result<std::vector<MergedPart>> merged_parts(const fs::path& path) {
  const auto db = open_merged(path);
  if (!db) return forward_error(db);
  try {
    std::vector<MergedPart> parts;
    SQLite::Statement rows(**db, std::string("SELECT name, host, boot_id FROM part") + kPartOrder);
    while (rows.executeStep()) {
      parts.push_back({rows.getColumn(0), rows.getColumn(1), rows.getColumn(2)});
    }
    return parts;
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(read_error(path, e, (*db)->getHandle()));
  }
}

Result<void> extract_part(const fs::path& path, unsigned number, const fs::path& to) {
  const auto db = open_merged(path);
  if (!db) return forward_error(db);
  try {
    SQLite::Statement row(
        **db, std::string("SELECT recording FROM part") + kPartOrder + " LIMIT 1 OFFSET ?");
    row.bind(1, static_cast<std::int64_t>(number) - 1);
    if (number == 0 || !row.executeStep()) {
      return fail(Errc::kNotFound, fmt::format("{} has no recording {}", path.string(), number));
    }
    const auto bytes = unpack(row.getColumn(0));
    if (bytes) return write_bytes(to, *bytes);
    return fail(Errc::kCorrupt, fmt::format("{}: recording {} is damaged", path.string(), number));
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(read_error(path, e, (*db)->getHandle()));
  }
}

Result<void> read_merged(const fs::path& path, const std::function<Result<void>(OfOneHost)>& each) {
  const auto db = open_merged(path);
  if (!db) return forward_error(db);
  try {
    SQLite::Statement rows(
        **db, std::string("SELECT name, host, boot_id, recording FROM part") + kPartOrder);
    OfOneHost of_host;
    const auto pass_on = [&]() -> Result<void> {
      if (of_host.empty()) return {};
      return each(std::exchange(of_host, {}));
    };
    while (rows.executeStep()) {
      MergedPart part{rows.getColumn(0), rows.getColumn(1), rows.getColumn(2)};
      if (!of_host.empty() && !is_one_machine(of_host.front().first, part)) {
        if (auto passed = pass_on(); !passed) return passed;
      }
      const auto bytes = unpack(rows.getColumn(3));
      if (!bytes) {
        return fail(Errc::kCorrupt,
                    fmt::format("{}: the recording {} is damaged", path.string(), part.name));
      }
      auto recording = recording_of(*bytes);
      if (!recording) return forward_error(recording);
      of_host.emplace_back(std::move(part), std::move(*recording));
    }
    return pass_on();
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(read_error(path, e, (*db)->getHandle()));
  }
}

Result<void> check_appendable(const fs::path& file) {
  if (is_sweep_file(file)) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{} is a sweep, to which no recording can be appended", file.string()));
  }
  if (auto claim = claim_of(file); !claim) return forward_error(claim);
  if (is_merged_file(file)) return {};
  auto recording = read_recording(file);
  if (!recording) return forward_error(recording);
  return {};
}

Result<std::size_t> append_recording(const fs::path& recording, const fs::path& file) {
  const auto claim = claim_of(file);
  if (!claim) return forward_error(claim);
  const auto names = part_names(file);
  if (!names) return forward_error(names);
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::find(*names, name) != names->end();
  };
  std::size_t number = names->size() + 1;
  while (is_taken(part_name(file, number))) ++number;
  const std::string name = part_name(file, number);

  bool ignored = false;
  const auto written = replace_with_merged({{file, part_name(file, 1), true}, {recording, name}},
                                           *claim, {}, ignored);
  if (!written) return forward_error(written);
  const auto now = part_names(file);
  if (!now) return forward_error(now);
  return static_cast<std::size_t>(std::ranges::find(*now, name) - now->begin()) + 1;
}

}  // namespace jouleprof::recording
