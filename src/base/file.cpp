#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

namespace jouleprof {
namespace {

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

}  // namespace

Error system_error(std::string_view what, int err) {
  return {code_of(err), fmt::format("{}: {}", what, std::strerror(err))};
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return tl::unexpected(system_error(fmt::format("cannot open {}", path.string()), errno));
  }
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
    if (n < 0) {
      return tl::unexpected(system_error(fmt::format("cannot read {}", path.string()), err));
    }
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
  long long value = 0;
  const auto [end, err] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (err != std::errc{} || end != text->data() + text->size()) {
    return fail(Errc::kCorrupt,
                fmt::format("{} holds '{}', not a whole number", path.string(), *text));
  }
  return value;
}

Result<std::vector<std::string>> list_folder(const std::filesystem::path& path) {
  // Not by std::filesystem: libstdc++'s directory_iterator ends the program where an allocation
  // fails.
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> folder(::opendir(path.c_str()), close);
  const auto fail_to_list = [&path] {
    return tl::unexpected(system_error(fmt::format("cannot list {}", path.string()), errno));
  };
  if (!folder) return fail_to_list();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(folder.get());
    if (entry == nullptr && errno != 0) return fail_to_list();
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

constexpr std::size_t kFirstBuffer = 4096;

}  // namespace

KeptFile::~KeptFile() { close(); }

void KeptFile::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<std::string_view> KeptFile::read(std::size_t limit) {
  if (fd_ < 0) fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) {
    return tl::unexpected(system_error(fmt::format("cannot open {}", path_.string()), errno));
  }
  if (buffer_.empty()) buffer_.resize(std::min(limit, kFirstBuffer));
  std::size_t size = 0;
  while (size < limit) {
    if (size == buffer_.size()) buffer_.resize(2 * size);
    const ssize_t n = ::pread(fd_, buffer_.data() + size, std::min(limit, buffer_.size()) - size,
                              static_cast<off_t>(size));
    if (n == 0) break;
    if (n > 0) {
      size += static_cast<std::size_t>(n);
      continue;
    }
    const int err = errno;
    if (err == EINTR) continue;
    close();
    return tl::unexpected(system_error(fmt::format("cannot read {}", path_.string()), err));
  }
  return std::string_view(buffer_).substr(0, size);
}

}  // namespace jouleprof
