#include "meters/shared/hub_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/process/local_socket.h"
#include "base/process/threads.h"

namespace jouleprof::meters {
namespace {

using namespace std::chrono_literals;

constexpr Duration kGreeting = 3s;
constexpr Duration kClockOffset = 5s;        // by which the clocks may differ, for a slow machine
constexpr std::size_t kMostItems = 100'000;  // domains and sensors

tl::unexpected<Error> gone() { return fail(Errc::kUnavailable, "it has stopped"); }

tl::unexpected<Error> other_version(int protocol) {
  return fail(Errc::kUnsupported,
              fmt::format("it speaks version {} of the protocol, not {}: it is another version of "
                          "jouleprof",
                          protocol, kHubProtocol));
}

}  // namespace

Result<HubLink> HubLink::connect(const std::filesystem::path& path, const Hello& hello,
                                 int descriptor) {
  const auto fd =
      connect_locally(path, fmt::format("cannot connect to the service at {}", path.string()));
  if (!fd) return forward_error(fd);
  HubLink link(*fd);
  if (auto greeted = link.greet(hello, descriptor); !greeted) {
    greeted.error().message += fmt::format(" (the service at {})", path.string());
    return forward_error(greeted);
  }
  return link;
}

HubLink::HubLink(HubLink&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      buffer_(std::move(other.buffer_)),
      fastest_(other.fastest_),
      domains_(std::move(other.domains_)),
      sensors_(std::move(other.sensors_)) {}

HubLink::~HubLink() {
  if (fd_ >= 0) ::close(fd_);
}

int HubLink::release() { return std::exchange(fd_, -1); }

Result<void> HubLink::greet(const Hello& hello, int descriptor) {
  const HostTime deadline = HostClock::now() + kGreeting;
  if (!send_with_descriptor(fd_, encode(ProgramMessage(hello)), descriptor) && errno != EPIPE &&
      errno != ECONNRESET) {
    return gone();
  }
  for (;;) {
    auto message = receive(deadline);
    if (!message) return forward_error(message);
    if (!*message) return fail(Errc::kUnavailable, "it does not answer");
    if (std::holds_alternative<Ready>(**message)) break;
    if (auto taken = take(**message); !taken) return taken;
  }
  for (const auto& [domain, measured] : domains_) {
    if (domain.parent && static_cast<std::size_t>(*domain.parent) >= domains_.size()) {
      return fail(Errc::kCorrupt, "a domain is part of one that does not exist");
    }
  }
  return {};
}

Result<void> HubLink::take(HubMessage& message) {
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    if (welcome->protocol != kHubProtocol) return other_version(welcome->protocol);
    if (std::chrono::abs(HostClock::now() - welcome->now) > kClockOffset) {
      return fail(Errc::kUnavailable, "its clock is not that of this program (a time namespace?)");
    }
    fastest_ = welcome->fastest;
    return {};
  }
  if (auto* offered = std::get_if<OfferedDomain>(&message)) {
    if (static_cast<std::size_t>(offered->domain.id) == domains_.size() &&
        domains_.size() < kMostItems) {
      domains_.push_back(std::move(*offered));
      return {};
    }
  } else if (auto* sensor = std::get_if<model::Sensor>(&message)) {
    if (sensors_.size() < kMostItems &&
        static_cast<std::size_t>(sensor->domain) < domains_.size()) {
      sensors_.push_back(std::move(*sensor));
      return {};
    }
  }
  return fail(Errc::kCorrupt, "its list of sensors cannot be understood");
}

Result<void> HubLink::send(const ProgramMessage& message) {
  const std::string packet = encode(message);
  while (::send(fd_, packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    // It has closed the connection; why is in what it sent before, which receive() finds.
    if (errno == EPIPE || errno == ECONNRESET) return {};
    return gone();
  }
  return {};
}

Result<std::optional<HubMessage>> HubLink::receive(HostTime deadline) {
  bool was_reset = false;
  for (;;) {
    const ssize_t n = ::recv(fd_, buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (n > 0) {
      const auto size = static_cast<std::size_t>(n);
      if (size > buffer_.size()) return fail(Errc::kCorrupt, "a message is too long");
      auto message = decode_hub_message({buffer_.data(), size});
      if (!message) return forward_error(message);
      if (const auto* refused = std::get_if<Refused>(&*message)) {
        if (refused->protocol != kHubProtocol) return other_version(refused->protocol);
        return fail(Errc::kUnavailable, refused->message);
      }
      return std::optional(std::move(*message));
    }
    if (n < 0 && errno == EINTR) continue;
    // It closed with a message of ours unread: the kernel says so before it gives the last answer.
    if (n < 0 && errno == ECONNRESET && !std::exchange(was_reset, true)) continue;
    if (n == 0 || errno != EAGAIN) return gone();
    if (HostClock::now() >= deadline) return std::optional<HubMessage>{};
    pollfd poll{fd_, POLLIN, 0};
    ::poll(&poll, 1, milliseconds_until(deadline));
  }
}

}  // namespace jouleprof::meters
