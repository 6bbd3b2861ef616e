#include "base/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/clock.h"
#include "base/file.h"

namespace jouleprof {
namespace {

namespace fs = std::filesystem;

constexpr int kMostTries = 100;

Error cannot_write(const fs::path& path, int err) {
  Error error = system_error(fmt::format("cannot write {}", path.string()), err);
  if (error.code == Errc::kNotFound) error.message += "; create its folder first";
  if (error.code == Errc::kPermissionDenied) {
    error.message += "; choose a folder that you may write to";
  }
  return error;
}

// A short name of its own: the target's may already be as long as a name can be.
fs::path hidden_next_to(const fs::path& target, const char* suffix) {
  static std::atomic<int> number = 0;
  return target.parent_path() /
         fmt::format(".jouleprof-{}-{}.{}", ::getpid(), number.fetch_add(1), suffix);
}

}  // namespace

fs::path without_links(fs::path path) {
  std::error_code err;
  for (int hops = 0; hops < 40 && fs::is_symlink(path, err); ++hops) {
    const fs::path to = fs::read_symlink(path, err);
    if (err) break;
    path = to.is_absolute() ? to : path.parent_path() / to;
  }
  return path;
}

Result<NewFile> NewFile::next_to(const fs::path& target) {
  const fs::path at = without_links(target);
  for (int tries = 0; tries < kMostTries; ++tries) {
    fs::path path = hidden_next_to(at, "new");
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      struct stat old {};
      if (::stat(at.c_str(), &old) == 0) (void)::fchmod(fd, old.st_mode & 0777);
      ::close(fd);
      return NewFile(std::move(path), at);
    }
    if (errno != EEXIST) break;
  }
  return tl::unexpected(cannot_write(target, errno));
}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), target_(std::move(other.target_)) {}

NewFile::~NewFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<void> NewFile::take_place() {
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return tl::unexpected(cannot_write(target_, errno));
  int err = ::fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
  ::close(fd);
  if (err == 0 && std::rename(path_.c_str(), target_.c_str()) != 0) err = errno;
  if (err != 0) return tl::unexpected(cannot_write(target_, err));
  path_.clear();
  return {};
}

OldFile OldFile::keep(const fs::path& path) {
  const fs::path at = without_links(path);
  fs::path second = hidden_next_to(at, "old");
  if (::link(at.c_str(), second.c_str()) != 0) second.clear();
  return {at, std::move(second)};
}

OldFile::OldFile(OldFile&& other) noexcept
    : path_(std::move(other.path_)), second_(std::exchange(other.second_, {})) {}

OldFile::~OldFile() {
  if (!second_.empty()) ::unlink(second_.c_str());
}

bool OldFile::put_back() {
  if (second_.empty() || std::rename(second_.c_str(), path_.c_str()) != 0) return false;
  ::unlink(second_.c_str());  // still there where both were names of one file
  second_.clear();
  return true;
}

bool is_same_file(const fs::path& a, const fs::path& b) {
  if (a.empty() || b.empty()) return false;
  struct stat first {};
  struct stat second {};
  const bool has_first = ::stat(a.c_str(), &first) == 0;
  const bool has_second = ::stat(b.c_str(), &second) == 0;
  if (has_first != has_second) return false;
  if (has_first) {
    return S_ISREG(first.st_mode) && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
  }
  std::error_code ignored;
  return fs::absolute(a, ignored).lexically_normal() == fs::absolute(b, ignored).lexically_normal();
}

namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 10s;

Result<int> open_to_write(const fs::path& path, int flags) {
  std::error_code ignored;  // open() says why
  fs::create_directories(path.parent_path(), ignored);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0666);
  if (fd >= 0) return fd;
  return tl::unexpected(system_error(fmt::format("cannot write {}", path.string()), errno));
}

// 0, or the errno of the failure.
int write_whole(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return ::fsync(fd) == 0 ? 0 : errno;
}

}  // namespace

Result<FileLock> FileLock::take(const fs::path& path) {
  const auto fd = open_to_write(path, 0);
  if (!fd) return forward_error(fd);
  FileLock lock(*fd);
  const HostTime end = HostClock::now() + kPatience;
  while (::flock(*fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS) break;
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return tl::unexpected(system_error(fmt::format("cannot lock {}", path.string()), errno));
    }
    if (HostClock::now() >= end) {
      return fail(Errc::kTimeout,
                  fmt::format("cannot lock {}: another process has held it for 10 s. Try again "
                              "when that process has ended",
                              path.string()));
    }
    std::this_thread::sleep_for(5ms);
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  ::flock(fd_, LOCK_UN);  // a child process that was forked meanwhile holds the descriptor, too
  ::close(fd_);
}

Result<void> replace_file(const fs::path& path, std::string_view content) {
  const fs::path fresh = path.string() + ".new";
  // What a crash has left, or another user has put there: a link could lead to any file.
  ::unlink(fresh.c_str());
  const auto fd = open_to_write(fresh, O_EXCL);
  if (!fd) return forward_error(fd);
  int err = write_whole(*fd, content);
  if (::close(*fd) != 0 && err == 0) err = errno;
  if (err == 0 && std::rename(fresh.c_str(), path.c_str()) != 0) err = errno;
  if (err == 0) return {};
  ::unlink(fresh.c_str());
  return tl::unexpected(system_error(fmt::format("cannot write {}", path.string()), err));
}

Result<void> append_to_file(const fs::path& path, std::size_t size, std::string_view more) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  struct stat now {};
  int err = fd < 0 || ::fstat(fd, &now) != 0 ? errno : 0;
  const bool is_other = err == 0 && static_cast<std::size_t>(now.st_size) != size;
  if (err == 0 && !is_other) err = write_whole(fd, more);
  if (fd >= 0 && ::close(fd) != 0 && err == 0) err = errno;
  if (is_other) {
    return fail(Errc::kCorrupt, fmt::format("{} was changed by another program", path.string()));
  }
  if (err == 0) return {};
  return tl::unexpected(system_error(fmt::format("cannot write {}", path.string()), err));
}

}  // namespace jouleprof
