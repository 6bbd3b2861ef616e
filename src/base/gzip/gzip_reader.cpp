#include "base/gzip/gzip_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"

namespace jouleprof {
namespace {

constexpr unsigned kBufferBytes = 256 * 1024;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

gzFile handle(void* file) { return static_cast<gzFile>(file); }

}  // namespace

void GzipReader::Close::operator()(void* file) const noexcept { gzclose_r(handle(file)); }

Result<GzipReader> GzipReader::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return tl::unexpected(system_error(fmt::format("cannot open {}", path.string()), errno));
  }
  struct stat status {};
  if (::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(fd);
    return tl::unexpected(system_error(fmt::format("cannot read {}", path.string()), EISDIR));
  }
  const gzFile file = gzdopen(fd, "rb");
  if (!file) {
    ::close(fd);
    return fail(Errc::kUnavailable, fmt::format("cannot read {}: out of memory", path.string()));
  }
  gzbuffer(file, kBufferBytes);
  return GzipReader(path.string(), file);
}

Result<std::size_t> GzipReader::read(char* to, std::size_t size) {
  errno = 0;
  const int got =
      gzread(handle(file_.get()), to, static_cast<unsigned>(std::min(size, kMostAtOnce)));
  if (got > 0 || size == 0) return static_cast<std::size_t>(std::max(got, 0));
  int code = Z_OK;
  const char* text = gzerror(handle(file_.get()), &code);
  if (code == Z_ERRNO) {
    return tl::unexpected(system_error(fmt::format("cannot read {}", path_), errno));
  }
  if (got == 0 && code != Z_BUF_ERROR) return std::size_t{0};
  if (code == Z_BUF_ERROR) {
    return fail(Errc::kCorrupt, fmt::format("{}: the compressed file is cut off", path_));
  }
  return fail(Errc::kCorrupt, fmt::format("{}: the compressed data are damaged ({})", path_, text));
}

}  // namespace jouleprof
