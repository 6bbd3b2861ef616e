#include "base/kept_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"

namespace jouleprof {
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
