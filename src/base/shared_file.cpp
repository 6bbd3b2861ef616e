#include "base/shared_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/file.h"

namespace jouleprof {
namespace {

namespace fs = std::filesystem;
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

}  // namespace jouleprof
