#include "base/process/local_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
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

// Of this process. Programs may close all descriptors, and then have files of their own under their
// numbers: a socket's inode says whether it is still the same.
struct Connection {
  static constexpr int kFree = 0;
  static constexpr int kTaken = -1;

  std::atomic<int> above{kFree};  // the descriptor, plus one
  std::atomic<ino_t> inode{0};
};
std::array<Connection, 64> connections;  // what has no room stays open in children

std::optional<ino_t> inode_of(int fd) noexcept {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode)) return std::nullopt;
  return status.st_ino;
}

void close_in_child() {
  for (auto& connection : connections) {
    const int above = connection.above.exchange(Connection::kFree);
    if (above > 0 && inode_of(above - 1) == connection.inode.load()) ::close(above - 1);
  }
}

void keep_from_children(int fd) noexcept {
  static const int registered [[maybe_unused]] = pthread_atfork(nullptr, nullptr, close_in_child);
  const auto inode = inode_of(fd);
  if (!inode) return;
  for (auto& connection : connections) {
    int free = Connection::kFree;
    if (!connection.above.compare_exchange_strong(free, Connection::kTaken)) continue;
    connection.inode.store(*inode);
    connection.above.store(fd + 1);
    return;
  }
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
  keep_from_children(fd);
  return fd;
}

bool is_connected(int socket) noexcept {
  const auto inode = inode_of(socket);
  if (!inode) return false;
  bool is_listed = false;
  for (const auto& connection : connections) {
    if (connection.above.load() != socket + 1) continue;
    if (connection.inode.load() == *inode) return true;
    is_listed = true;
  }
  return !is_listed;  // one that had no room
}

void disconnect(int socket) noexcept {
  const bool is_ours = is_connected(socket);
  for (auto& connection : connections) {
    int above = socket + 1;
    if (connection.above.compare_exchange_strong(above, Connection::kFree)) break;
  }
  if (is_ours) ::close(socket);
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

ssize_t receive_with_descriptor(int socket, std::string& buffer, Descriptor& descriptor) {
  iovec data{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  descriptor.close();
  const ssize_t n = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
  if (n < 0) return n;
  for (cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h)) {
    if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
        h->cmsg_len == CMSG_LEN(sizeof(int))) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(h), sizeof fd);
      descriptor = Descriptor(fd);
    }
  }
  return n;
}

}  // namespace jouleprof
