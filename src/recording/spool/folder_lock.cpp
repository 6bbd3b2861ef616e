#include "recording/spool/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace jouleprof::spool {

FolderLock FolderLock::take(const std::filesystem::path& folder, int how) {
  FolderLock lock;
  lock.fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock.fd_ >= 0) lock.busy_ = ::flock(lock.fd_, how | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return lock;
}

FolderLock FolderLock::of_reader(const std::filesystem::path& folder) {
  return take(folder, LOCK_EX);
}

FolderLock FolderLock::of_visitor(const std::filesystem::path& folder) {
  return take(folder, LOCK_SH);
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), busy_(other.busy_) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(busy_, other.busy_);
  return *this;
}

}  // namespace jouleprof::spool
