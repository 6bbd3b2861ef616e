// A small file that is read again and again: opened once.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace jouleprof {

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
