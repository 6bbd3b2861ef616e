#include "base/process/local_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "base/file.h"

namespace jouleprof {
namespace {

namespace fs = std::filesystem;

constexpr int kBacklog = 128;
constexpr timeval kPatience{2, 0};

std::optional<sockaddr_un> address_of(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  return address;
}

tl::unexpected<Error> cannot(const std::string& trying, int err) {
  Error error = system_error(trying, err);
  const bool is_absent = err == ENOENT || err == ECONNREFUSED;
  error.code = is_absent                       ? Errc::kNotFound
               : err == EACCES || err == EPERM ? Errc::kPermissionDenied
                                               : Errc::kUnavailable;
  return tl::unexpected(std::move(error));
}

}  // namespace

Result<int> listen_locally(const fs::path& path) {
  const auto failed = [&](int err) {
    auto error = cannot(fmt::format("cannot listen on {}", path.string()), err);
    error.value().code = Errc::kUnavailable;
    return error;
  };
  const auto address = address_of(path);
  if (!address) return failed(ENAMETOOLONG);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return failed(errno);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      ::listen(fd, kBacklog) != 0) {
    const int err = errno;
    ::close(fd);
    return failed(err);
  }
  return fd;
}

Result<int> connect_locally(const fs::path& path, const std::string& trying) {
  const auto address = address_of(path);
  if (!address) return cannot(trying, ENAMETOOLONG);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return cannot(trying, errno);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  int failed = 0;
  do {
    failed = ::connect(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
  } while (failed != 0 && errno == EINTR);
  if (failed != 0 || ::fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
    const int err = errno;
    ::close(fd);
    return cannot(trying, err);
  }
  return fd;
}

}  // namespace jouleprof
