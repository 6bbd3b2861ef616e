// A program's connection to a hub.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "meters/shared/hub_protocol.h"

namespace jouleprof::meters {

// Thread safety: one thread calls everything.
class HubLink {
 public:
  // Says hello, with a file descriptor if it is not -1, and takes the hub's list of what it
  // measures. Errors: not_found without a hub, permission_denied, unavailable (it refuses, does not
  // answer, or its clock is another one), unsupported (it is another version), corrupt.
  static Result<HubLink> connect(const std::filesystem::path& path, const Hello& hello,
                                 int descriptor = -1);
  HubLink(HubLink&& other) noexcept;
  HubLink& operator=(HubLink&&) = delete;
  HubLink(const HubLink&) = delete;
  ~HubLink();

  Duration fastest() const { return fastest_; }
  // Numbered from zero; each parent is one of them, and so is the domain of each sensor.
  const std::vector<OfferedDomain>& domains() const { return domains_; }
  const std::vector<model::Sensor>& sensors() const { return sensors_; }

  int fd() const { return fd_; }
  int release();  // the connection, which is then the caller's

  // Errors: unavailable when the hub is gone or takes nothing.
  Result<void> send(const ProgramMessage& message);
  // The next message; absent when none has come by `deadline`. Errors: unavailable when the hub
  // is gone or refuses, unsupported, corrupt.
  Result<std::optional<HubMessage>> receive(HostTime deadline);

 private:
  explicit HubLink(int fd) : fd_(fd), buffer_(kLongestPacket, '\0') {}
  Result<void> greet(const Hello& hello, int descriptor);
  Result<void> take(HubMessage& message);

  int fd_;
  std::string buffer_;
  Duration fastest_{};
  std::vector<OfferedDomain> domains_;
  std::vector<model::Sensor> sensors_;
};

}  // namespace jouleprof::meters
