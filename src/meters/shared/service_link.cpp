#include "meters/shared/service_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/process/local_socket.h"
#include "base/process/threads.h"

namespace jouleprof::meters::shared {
namespace {

tl::unexpected<Error> gone() {
  return fail(Errc::kUnavailable, "the service that shared its sensors has stopped");
}

}  // namespace

Result<ServiceLink> ServiceLink::connect(const std::filesystem::path& path) {
  const auto fd =
      connect_locally(path, fmt::format("cannot connect to the service at {}", path.string()));
  if (!fd) return forward_error(fd);
  return ServiceLink(*fd);
}

ServiceLink::ServiceLink(ServiceLink&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}

ServiceLink::~ServiceLink() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> ServiceLink::send(const ProgramMessage& message) {
  const std::string packet = encode(message);
  while (::send(fd_, packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    // It has closed the connection; why is in what it sent before, which receive() finds.
    if (errno == EPIPE || errno == ECONNRESET) return {};
    return gone();
  }
  return {};
}

Result<std::optional<ServiceMessage>> ServiceLink::receive(HostTime deadline) {
  bool was_reset = false;
  for (;;) {
    const ssize_t n = ::recv(fd_, buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (n > 0) {
      const auto size = static_cast<std::size_t>(n);
      if (size > buffer_.size()) {
        return fail(Errc::kCorrupt, "a message of the sensors' service is too long");
      }
      auto message = decode_service_message({buffer_.data(), size});
      if (!message) return forward_error(message);
      return std::optional(std::move(*message));
    }
    if (n < 0 && errno == EINTR) continue;
    // It closed with a message of ours unread: the kernel says so before it gives the last answer.
    if (n < 0 && errno == ECONNRESET && !std::exchange(was_reset, true)) continue;
    if (n == 0 || errno != EAGAIN) return gone();
    if (HostClock::now() >= deadline) return std::optional<ServiceMessage>{};
    pollfd poll{fd_, POLLIN, 0};
    ::poll(&poll, 1, milliseconds_until(deadline));
  }
}

}  // namespace jouleprof::meters::shared
