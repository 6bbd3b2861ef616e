#include "recording/merge/merged_base.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/file.h"
#include "recording/sqlite_file.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;

constexpr FileKind kMerged{0x4a504d47, 1, "a merged recording"};  // "JPMG"
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

}  // namespace

void make_merged_tables(SQLite::Database& db) {
  mark_as(kMerged, db);
  db.exec(kSchema);
}

Result<MergedBase> open_merged(const fs::path& path) {
  return open_file_of(kMerged, path, SQLite::OPEN_READONLY);
}

std::string_view blob_of(const SQLite::Column& column) {
  return {static_cast<const char*>(column.getBlob()), static_cast<std::size_t>(column.getBytes())};
}

Result<void> write_bytes(const fs::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) return fail(Errc::kUnavailable, "cannot write " + path.string());
  return {};
}

Result<TemporaryRecording> TemporaryRecording::create() {
  std::string folder = (fs::temp_directory_path() / "jouleprof-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    return tl::unexpected(system_error("cannot make a temporary folder", errno));
  }
  return TemporaryRecording(folder);
}

Result<TemporaryRecording> TemporaryRecording::write(std::string_view bytes) {
  auto made = create();
  if (!made) return made;
  if (auto written = write_bytes(made->path(), bytes); !written) return forward_error(written);
  return made;
}

TemporaryRecording::~TemporaryRecording() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

}  // namespace jouleprof::recording
