#include "session/windows/session_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/process/local_socket.h"

namespace jouleprof::session {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<SessionSocket> SessionSocket::create() {
  Error error{Errc::kUnavailable, "there is no folder for a socket"};
  for (const char* parent : std::initializer_list<const char*>{::getenv("XDG_RUNTIME_DIR"),
                                                               ::getenv("TMPDIR"), "/tmp"}) {
    if (parent == nullptr || *parent != '/') continue;
    SessionFolder::remove_dead(parent);
    auto folder = SessionFolder::create(parent);
    const auto fd = folder ? listen_locally(folder->socket()) : Result<int>(forward_error(folder));
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
  auto fd = connect_locally(path, fmt::format("cannot connect to the session {}", path.string()));
  if (!fd) fd.error().code = Errc::kUnavailable;
  return fd;
}

}  // namespace jouleprof::session
