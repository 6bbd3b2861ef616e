// Small files: reading whole texts and listing folders, with errors that name the path.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace jouleprof {

// The Error of a failed system call: `what` is what was tried ("cannot open /x"), `err` its errno.
Error system_error(std::string_view what, int err);

// The whole content. Works for /proc and /sys, whose sizes are not known in advance.
// Errors: not_found, permission_denied, unavailable; invalid_argument when longer than `limit`.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::size_t limit = std::size_t{1} << 30);

// A text without its white space at both ends.
std::string_view trim(std::string_view text);

// The first line of a file, trimmed: what most /sys attributes are.
Result<std::string> read_attribute(const std::filesystem::path& path);

// A /sys attribute that holds one whole number. Errors: as read_file; corrupt when it is no number.
Result<long long> read_integer(const std::filesystem::path& path);

// Names (not paths) in a folder, sorted. Errors: as read_file.
Result<std::vector<std::string>> list_folder(const std::filesystem::path& path);

// A small file that is read again and again: opened once.

// For files of /proc and /sys, which say something new at each read; opening them costs as much as
// reading. A file that another takes the place of is not noticed.
// Thread safety: none.
class KeptFile {
 public:
  explicit KeptFile(std::filesystem::path path) : path_(std::move(path)) {}
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;
  ~KeptFile();

  // What the file holds now, up to `limit` bytes; valid until the next read. After a failure it is
  // opened anew. Errors: as read_file's.
  Result<std::string_view> read(std::size_t limit = std::string::npos);

  const std::filesystem::path& path() const { return path_; }

 private:
  void close();

  std::filesystem::path path_;
  int fd_ = -1;
  std::string buffer_;
};

}  // namespace jouleprof
