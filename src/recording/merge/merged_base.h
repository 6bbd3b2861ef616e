// What writing and reading merged files have in common. Private to this folder.
#pragma once

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>

#include <filesystem>
#include <memory>
#include <string_view>

#include "base/result.h"

namespace jouleprof::recording {

using MergedBase = std::unique_ptr<SQLite::Database>;

// For SELECT ... FROM part: recordings of one machine follow each other.
inline constexpr const char* kPartOrder = " ORDER BY boot_id, host, name, crc32, length_bytes";

// Makes the tables of an empty database. Throws SQLite::Exception.
void make_merged_tables(SQLite::Database& db);

// For reading. Errors: not_found; corrupt where it is no merged file; unsupported for a newer one.
Result<MergedBase> open_merged(const std::filesystem::path& path);

std::string_view blob_of(const SQLite::Column& column);

Result<void> write_bytes(const std::filesystem::path& path, std::string_view bytes);

// The name of a file that the reader of recordings can open; removed again.
class TemporaryRecording {
 public:
  static Result<TemporaryRecording> create();
  static Result<TemporaryRecording> write(std::string_view bytes);
  TemporaryRecording(TemporaryRecording&& other) noexcept : folder_(std::move(other.folder_)) {
    other.folder_.clear();
  }
  TemporaryRecording& operator=(TemporaryRecording&&) = delete;
  ~TemporaryRecording();
  std::filesystem::path path() const { return std::filesystem::path(folder_) / "part.jprof"; }

 private:
  explicit TemporaryRecording(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

}  // namespace jouleprof::recording
