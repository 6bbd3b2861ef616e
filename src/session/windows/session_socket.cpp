#include "session/windows/session_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
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

namespace {

constexpr std::string_view kPrefix = "jouleprof-";
constexpr std::size_t kRandomLetters = 6;

int open_folder(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool is_name_of_ours(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kRandomLetters) return false;
  name.remove_prefix(kPrefix.size());
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

bool is_old_and_mine(int folder, Duration age) {
  struct stat about {};
  if (::fstat(folder, &about) != 0 || about.st_uid != ::geteuid()) return false;
  const RealTime changed{std::chrono::seconds{about.st_mtim.tv_sec}};
  return RealClock::now() - changed >= age;
}

// Of versions without the lock.
bool does_nothing_listen_on(const fs::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.native().size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, socket.c_str(), socket.native().size());
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const bool failed =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0;
  const int err = errno;
  ::close(fd);
  return failed && (err == ECONNREFUSED || err == ENOENT);
}

void remove_if_dead(const fs::path& path, Duration age) {
  const int folder = open_folder(path);
  if (folder < 0) return;
  const fs::path socket = path / "session";
  if (is_old_and_mine(folder, age) && ::flock(folder, LOCK_EX | LOCK_NB) == 0 &&
      does_nothing_listen_on(socket)) {
    ::unlinkat(folder, "session", 0);
    ::rmdir(path.c_str());  // fails where there is anything else in it
  }
  ::close(folder);
}

}  // namespace

Result<SessionFolder> SessionFolder::create(const fs::path& parent) {
  std::string made = (parent / kPrefix).string() + std::string(kRandomLetters, 'X');
  if (::mkdtemp(made.data()) == nullptr) {
    Error error = system_error("cannot make the folder " + made, errno);
    error.code = Errc::kUnavailable;
    return tl::unexpected(std::move(error));
  }
  const int lock = open_folder(made);
  if (lock >= 0) ::flock(lock, LOCK_EX | LOCK_NB);
  return SessionFolder(made, lock);
}

SessionFolder::SessionFolder(SessionFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

SessionFolder::~SessionFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove(socket(), ignored);
  fs::remove(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void SessionFolder::remove_dead(const fs::path& parent, Duration age) {
  const auto names = list_folder(parent);
  if (!names) return;
  for (const auto& name : *names) {
    if (is_name_of_ours(name)) remove_if_dead(parent / name, age);
  }
}

}  // namespace jouleprof::session
