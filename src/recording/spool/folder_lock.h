// Tells whether somebody takes in what lies in a spool's folder.
#pragma once

#include <filesystem>

namespace jouleprof::spool {

// Held by the tool for as long as it reads a folder; the system lets go of it when the tool dies.
// Where folders cannot be locked there is no telling: then nobody seems to be there.
//
// Thread safety: none.
class FolderLock {
 public:
  // Whoever takes in and removes what processes tell.
  static FolderLock of_reader(const std::filesystem::path& folder);
  // Whoever only looks. busy(): such a reader is at it.
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
