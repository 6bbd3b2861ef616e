// A program's connection to a service that shares its sensors.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "meters/shared/service_protocol.h"

namespace jouleprof::meters::shared {

// Thread safety: one thread calls everything.
class ServiceLink {
 public:
  // Errors: not_found without a service, permission_denied, unavailable.
  static Result<ServiceLink> connect(const std::filesystem::path& path);
  ServiceLink(ServiceLink&& other) noexcept;
  ServiceLink& operator=(ServiceLink&&) = delete;
  ServiceLink(const ServiceLink&) = delete;
  ~ServiceLink();

  // Errors: unavailable when the service is gone or takes nothing.
  Result<void> send(const ProgramMessage& message);
  // The next message; absent when none has come by `deadline`. Errors: unavailable when the service
  // is gone, corrupt.
  Result<std::optional<ServiceMessage>> receive(HostTime deadline);

 private:
  explicit ServiceLink(int fd) : fd_(fd), buffer_(kLongestServicePacket, '\0') {}

  int fd_;
  std::string buffer_;
};

}  // namespace jouleprof::meters::shared
