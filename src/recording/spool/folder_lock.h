// Shows whether a tool reads the spools of a folder.
#pragma once

#include <filesystem>

namespace jouleprof::spool {

// The tool holds it while it reads a folder; the kernel releases it when the tool dies. Where
// folders cannot be locked, no folder is busy.
//
// Thread safety: none.
class FolderLock {
 public:
  // Of the process that takes the records and removes the files.
  static FolderLock of_reader(const std::filesystem::path& folder);
  // Of a process that changes nothing. busy(): another process has the lock of a reader.
  static FolderLock of_visitor(const std::filesystem::path& folder);

  FolderLock() = default;
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;

  bool busy() const { return busy_; }

 private:
  static FolderLock take(const std::filesystem::path& folder, int how);

  int fd_ = -1;
  bool busy_ = false;
};

}  // namespace jouleprof::spool
