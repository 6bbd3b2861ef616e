// What a program and a service that shares its sensors say to each other: packets on a Unix socket.
//
//     program      service
//     hello                        protocol, demand, process period
//                  welcome         protocol, time, the shortest period that is allowed
//                  domain, sensor  one packet each; domains are numbered from zero in their order
//                  ready
//                  readings, uses  from now on, whenever there are some
//     read                         id: every sensor is to be read now
//                  done            id: its readings have been sent
//                  refused         protocol, message: the service closes the connection
//
// Readings and uses are binary, the others JSON. Times are CLOCK_MONOTONIC in nanoseconds, energies
// are microjoules. On any other message, close the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "meters/meter.h"

namespace jouleprof::meters {

inline constexpr int kServiceProtocol = 3;  // any change is a new one
inline constexpr const char* kServiceVariable = "JOULEPROF_SERVICE";
// Within the folder of this user's, or the system's, running programs. The folder above it may hold
// settings that are to be restored, which must outlive the service.
inline constexpr const char* kServiceSocket = "jouleprof/serve/sampler.sock";
inline constexpr std::size_t kLongestServicePacket = std::size_t{64} << 10;

struct ServiceHello {
  int protocol = kServiceProtocol;
  Demand demand;
  Duration process_period{};  // zero: processes on the devices are not asked for
};
struct ReadRequest {
  std::uint64_t id = 0;
};
using ProgramMessage = std::variant<ServiceHello, ReadRequest>;

struct ServiceWelcome {
  int protocol = kServiceProtocol;
  HostTime now{};
  Duration fastest{};
};
struct ServiceReady {};
struct ServiceRefusal {
  int protocol = kServiceProtocol;
  std::string message;
};
struct ReadDone {
  std::uint64_t id = 0;
};
// A use with pid 0 is that of all processes of other users together.
using GpuUses = std::vector<model::GpuProcessUse>;
using ServiceMessage = std::variant<ServiceWelcome, model::Domain, model::Sensor, ServiceReady,
                                    ServiceRefusal, ReadDone, model::Readings, GpuUses>;

// A text that is no UTF-8 arrives with replacement characters.
std::string encode(const ProgramMessage& message);
// Not for readings and uses, which may need several packets.
std::string encode(const ServiceMessage& message);
std::vector<std::string> encode_readings(const model::Readings& readings);
std::vector<std::string> encode_uses(const GpuUses& uses);

// Errors: corrupt.
Result<ProgramMessage> decode_program_message(std::string_view packet);
Result<ServiceMessage> decode_service_message(std::string_view packet);

// How often readings are sent to a program with this demand.
Duration delivery_period(const Demand& demand);
// The demand of two programs together.
Demand joined_demand(const Demand& a, const Demand& b);
// No period below `fastest`.
Demand bounded_demand(Demand demand, Duration fastest);

}  // namespace jouleprof::meters
