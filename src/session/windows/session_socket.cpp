#include "session/windows/session_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
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

bool send_with_descriptor(int socket, std::string packet, int descriptor) {
  iovec data{packet.data(), packet.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) >= 0;
}

ssize_t receive_with_descriptor(int socket, std::string& buffer, int& descriptor) {
  iovec data{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  descriptor = -1;
  const ssize_t n = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
  if (n < 0) return n;
  for (cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h)) {
    if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
        h->cmsg_len == CMSG_LEN(sizeof(int))) {
      std::memcpy(&descriptor, CMSG_DATA(h), sizeof descriptor);
    }
  }
  return n;
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
