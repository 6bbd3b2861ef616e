// A small file that several processes rewrite.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace jouleprof {

// Excludes other processes and threads that lock the same path, until it is destroyed. Creates the
// file at `path`, which stays, and its folder; lock a file next to the one to be replaced. On a
// file system without locks it excludes nothing.
class FileLock {
 public:
  // Waits for another holder for at most 10 s. Errors: of the file system; timeout.
  static Result<FileLock> take(const std::filesystem::path& path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

// Gives the file a new content at once: a reader, also after a crash, finds the old content or the
// new one. Creates the folder. Two writers at one time need a FileLock. Errors: of the file system;
// then the old content stays.
Result<void> replace_file(const std::filesystem::path& path, std::string_view content);

}  // namespace jouleprof
