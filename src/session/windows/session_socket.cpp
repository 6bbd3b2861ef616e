#include "session/windows/session_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "base/file.h"

namespace jouleprof::session {
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

Error cannot(const fs::path& path, int err) {
  Error error = system_error(fmt::format("cannot listen on {}", path.string()), err);
  error.code = Errc::kUnavailable;
  return error;
}

Result<int> listen_on(const fs::path& path) {
  const auto address = address_of(path);
  if (!address) return tl::unexpected(cannot(path, ENAMETOOLONG));
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return tl::unexpected(cannot(path, errno));
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      ::listen(fd, kBacklog) != 0) {
    const int err = errno;
    ::close(fd);
    return tl::unexpected(cannot(path, err));
  }
  return fd;
}

}  // namespace

Result<SessionSocket> SessionSocket::create() {
  Error error{Errc::kUnavailable, "there is no folder for a socket"};
  for (const char* parent : std::initializer_list<const char*>{::getenv("XDG_RUNTIME_DIR"),
                                                               ::getenv("TMPDIR"), "/tmp"}) {
    if (parent == nullptr || *parent != '/') continue;
    SessionFolder::remove_dead(parent);
    auto folder = SessionFolder::create(parent);
    const auto fd = folder ? listen_on(folder->socket()) : Result<int>(forward_error(folder));
    if (fd) return SessionSocket(std::move(*folder), *fd);
    error = fd.error();
  }
  return tl::unexpected(std::move(error));
}

SessionSocket::SessionSocket(SessionSocket&& other) noexcept
    : folder_(std::move(other.folder_)),
      path_(std::exchange(other.path_, {})),
      fd_(std::exchange(other.fd_, -1)) {}

SessionSocket::~SessionSocket() {
  if (fd_ >= 0) ::close(fd_);
}

Result<int> connect_to_session(const fs::path& path) {
  const std::string trying = fmt::format("cannot connect to the session {}", path.string());
  const auto address = address_of(path);
  if (!address) return fail(Errc::kUnavailable, trying + ": the path is too long");
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(Errc::kUnavailable, system_error(trying, errno).message);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  int failed = 0;
  do {
    failed = ::connect(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
  } while (failed != 0 && errno == EINTR);
  if (failed != 0 || ::fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
    const int err = errno;
    ::close(fd);
    return fail(Errc::kUnavailable, system_error(trying, err).message);
  }
  return fd;
}

}  // namespace jouleprof::session
