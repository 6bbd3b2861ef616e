#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace jouleprof {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

Errc code_of(int err) {
  switch (err) {
    case ENOENT:
    case ENOTDIR:
    case ENODEV:
    case ENXIO:
      return Errc::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return Errc::kPermissionDenied;
    case EOPNOTSUPP:
    case ENOSYS:
      return Errc::kUnsupported;
    case EINVAL:
    case EISDIR:
      return Errc::kInvalidArgument;
    case ETIMEDOUT:
      return Errc::kTimeout;
    default:
      return Errc::kUnavailable;
  }
}

constexpr std::size_t kFirstBuffer = 4096;  // of a KeptFile
constexpr int kMostTries = 100;             // for the name of a NewFile
constexpr Duration kPatience = 10s;         // with who holds a FileLock

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

Result<int> open_to_write(const fs::path& path, int flags) {
  std::error_code ignored;  // open() says why
  fs::create_directories(path.parent_path(), ignored);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0666);
  if (fd >= 0) return fd;
  return system_failure(fmt::format("cannot write {}", path.string()), errno);
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

Error system_error(std::string_view what, int err) {
  return {code_of(err), fmt::format("{}: {}{}", what, std::strerror(err),
                                    err == EMFILE  ? " (raise the limit: ulimit -n)"
                                    : err == EFBIG ? " (raise the limit: ulimit -f)"
                                                   : "")};
}

tl::unexpected<Error> system_failure(std::string_view what, int err) {
  return tl::unexpected(system_error(what, err));
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_failure(fmt::format("cannot open {}", path.string()), errno);
  std::string text;
  std::array<char, 16384> chunk;
  for (;;) {
    const ssize_t n = ::read(fd, chunk.data(), chunk.size());
    if (n > 0 && text.size() + static_cast<std::size_t>(n) <= limit) {
      text.append(chunk.data(), static_cast<std::size_t>(n));
      continue;
    }
    const int err = errno;
    if (n < 0 && err == EINTR) continue;
    ::close(fd);
    if (n == 0) return text;
    if (n < 0) return system_failure(fmt::format("cannot read {}", path.string()), err);
    return fail(Errc::kInvalidArgument,
                fmt::format("{} is longer than {} bytes", path.string(), limit));
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

Result<std::string> read_attribute(const std::filesystem::path& path) {
  auto text = read_file(path, 1 << 20);
  if (!text) return text;
  return std::string(trim(std::string_view(*text).substr(0, text->find('\n'))));
}

Result<long long> read_integer(const std::filesystem::path& path) {
  auto text = read_attribute(path);
  if (!text) return forward_error(text);
  if (const auto value = parse_integer(*text)) return *value;
  return fail(Errc::kCorrupt,
              fmt::format("{} holds '{}', not a whole number", path.string(), *text));
}

namespace {

Result<std::vector<std::string>> list(const std::filesystem::path& path, bool only_folders) {
  // Not by std::filesystem: libstdc++'s directory_iterator ends the program where an allocation
  // fails.
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> folder(::opendir(path.c_str()), close);
  const auto fail_to_list = [&path] {
    return system_failure(fmt::format("cannot list {}", path.string()), errno);
  };
  if (!folder) return fail_to_list();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(folder.get());
    if (entry == nullptr && errno != 0) return fail_to_list();
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (only_folders && entry->d_type != DT_DIR) {
      std::error_code ignored;
      if (entry->d_type != DT_UNKNOWN) continue;
      if (!std::filesystem::is_directory(symlink_status(path / name, ignored))) continue;
    }
    names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

Result<std::vector<std::string>> list_folder(const std::filesystem::path& path) {
  return list(path, false);
}

std::vector<std::string> names_in(const std::filesystem::path& path) {
  return list_folder(path).value_or(std::vector<std::string>{});
}

std::vector<std::string> folders_in(const std::filesystem::path& path) {
  return list(path, true).value_or(std::vector<std::string>{});
}

Result<std::string_view> KeptFile::read(std::size_t limit) {
  int fd = file_.get();
  if (fd < 0 && (fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) >= 0) file_.reset(fd);
  if (fd < 0) return system_failure(fmt::format("cannot open {}", path_.string()), errno);
  if (buffer_.empty()) buffer_.resize(std::min(limit, kFirstBuffer));
  std::size_t size = 0;
  while (size < limit) {
    if (size == buffer_.size()) buffer_.resize(2 * size);
    const ssize_t n = ::pread(fd, buffer_.data() + size, std::min(limit, buffer_.size()) - size,
                              static_cast<off_t>(size));
    if (n == 0) break;
    if (n > 0) {
      size += static_cast<std::size_t>(n);
      continue;
    }
    const int err = errno;
    if (err == EINTR) continue;
    file_.close();
    return system_failure(fmt::format("cannot read {}", path_.string()), err);
  }
  return std::string_view(buffer_).substr(0, size);
}

Result<TemporaryFolder> TemporaryFolder::create() {
  std::error_code err;
  std::string path = (fs::temp_directory_path(err) / "jouleprof-XXXXXX").string();
  if (!err && ::mkdtemp(path.data()) != nullptr) return TemporaryFolder(path);
  Error error = system_error("cannot make a temporary folder", err ? err.value() : errno);
  error.message += "; set TMPDIR to a folder that can be written";
  return tl::unexpected(std::move(error));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

fs::path user_folder(const char* variable, std::string_view usual) {
  const fs::path named = environment(variable);
  const fs::path home = environment("HOME");
  return !named.empty() || home.empty() ? named : home / usual;
}

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

Result<FileLock> FileLock::take(const fs::path& path) {
  const auto fd = open_to_write(path, 0);
  if (!fd) return forward_error(fd);
  FileLock lock(*fd);
  const HostTime end = HostClock::now() + kPatience;
  while (::flock(*fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS) break;
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return system_failure(fmt::format("cannot lock {}", path.string()), errno);
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
  return system_failure(fmt::format("cannot write {}", path.string()), err);
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
  return system_failure(fmt::format("cannot write {}", path.string()), err);
}

}  // namespace jouleprof
