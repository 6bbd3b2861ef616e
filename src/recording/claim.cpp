#include "recording/claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/file.h"
#include "recording/sqlite_file.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;

constexpr int kMostTries = 10;

Result<bool> is_there(const fs::path& path, bool overwrite) {
  const std::string trying = fmt::format("cannot create {}", path.string());
  std::error_code ignored;
  const fs::file_status there = fs::symlink_status(path, ignored);
  if (!fs::exists(there)) return false;
  if (fs::is_directory(there)) {
    return fail(Errc::kInvalidArgument, fmt::format("{}: it is a folder; name a file", trying));
  }
  if (!overwrite) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{}: it exists; choose another name or allow overwriting", trying));
  }
  if (!fs::is_regular_file(path, ignored)) {
    return fail(
        Errc::kInvalidArgument,
        fmt::format("{}: what is there is not an ordinary file; choose another name", trying));
  }
  return true;
}

bool is_file_of(int fd, const fs::path& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

}  // namespace

Result<Claim> Claim::take(const fs::path& path, bool overwrite) {
  std::error_code err;
  // The working directory may change while we write.
  const fs::path absolute = fs::absolute(path, err);
  if (err || path.empty()) {
    return fail(Errc::kInvalidArgument, fmt::format("cannot create '{}': {}", path.string(),
                                                    err ? err.message() : "no file name"));
  }
  const auto replaces = is_there(absolute, overwrite);
  if (!replaces) return forward_error(replaces);
  Claim claim(without_links(absolute), *replaces);
  if (auto locked = claim.lock(); !locked) return forward_error(locked);
  // One that exists is replaced only later: whether that can be is asked now.
  if (*replaces && ::access(claim.path_.parent_path().c_str(), W_OK) != 0) {
    Error error = system_error(fmt::format("cannot create {}", path.string()), errno);
    error.message += "; choose a folder that you may write to";
    return tl::unexpected(std::move(error));
  }
  return claim;
}

Result<void> Claim::lock() {
  const fs::path file = side_file(path_, kLockSuffix);
  for (int tries = 0; tries < kMostTries; ++tries) {
    const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) return {};
    lock_.reset(fd);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const bool busy = errno == EWOULDBLOCK;
      lock_.close();
      if (!busy) return {};
      return fail(Errc::kInvalidArgument,
                  fmt::format("cannot create {}: another jouleprof is writing it; choose another "
                              "name, or wait until that run ends or its monitor is closed",
                              path_.string()));
    }
    // Its former holder may have removed it in between.
    if (is_file_of(fd, file)) return {};
    lock_.close();
  }
  return {};
}

void Claim::release() {
  const int fd = lock_.get();
  if (fd < 0) return;
  ::unlink(side_file(path_, kLockSuffix).c_str());
  ::flock(fd, LOCK_UN);  // a forked child holds the descriptor, too
  lock_.close();
}

Claim::Claim(Claim&& other) noexcept
    : path_(std::move(other.path_)), replaces_(other.replaces_), lock_(std::move(other.lock_)) {}

Claim& Claim::operator=(Claim&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(replaces_, other.replaces_);
  std::swap(lock_, other.lock_);
  return *this;
}

Claim::~Claim() { release(); }

bool is_claimed(const fs::path& path) {
  const fs::path file = side_file(without_links(path), kLockSuffix);
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool is_held = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return is_held;
}

}  // namespace jouleprof::recording
