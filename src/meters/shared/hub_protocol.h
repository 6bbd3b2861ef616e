// What programs and a hub say to each other: packets on a Unix socket. A hub is whatever samples
// and shares: `jouleprof serve`, and `jouleprof run` with the programs of its command.
//
//     program      hub
//     hello                        protocol, whether readings are wanted, demand, process period;
//                                  with it may come a file descriptor, see below
//                  welcome         protocol, time, the shortest period that is allowed
//                  domain, sensor  one packet each; domains are numbered from zero in their order
//                  ready
//                  readings, uses  from now on, whenever there are some
//     read                         id: every sensor is to be read now
//                  done            id: its readings have been sent
//                  refused         protocol, message: the hub closes the connection
//
// To a hub that records, as `jouleprof run` does, programs hand over their windows:
//
//     names                        first, names: the texts of the names numbered first, first + 1,
//     ... devices                      domains: what its windows are charged with; default: all
//     windows                      those of one thread that have ended
//     lost                         count: windows that the program could not send in time
//
// The file descriptor is that of the program's rings (spans/windows/window_inbox.h): from them come
// the windows that a program that dies did not send, and the names of those that it did not end.
// Other `jouleprof run` of a job take part:
//
//     join                         visible: the domains that its command can use; the connection's
//                                  end ends that
//                  joined          recording, variables: once the work has begun
//     leave                        its command has ended; the hub ends the connection once it has
//                                  looked at the processes
//
// Readings, uses and windows are binary, the others JSON. Times are CLOCK_MONOTONIC in nanoseconds,
// energies are microjoules. On any other message, close the connection.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "meters/meter.h"
#include "model/recording.h"

namespace jouleprof::meters {

inline constexpr int kHubProtocol = 7;  // any change is a new one
inline constexpr const char* kServiceVariable = "JOULEPROF_SERVICE";
inline constexpr const char* kSessionVariable =
    "JOULEPROF_SESSION";  // the socket of `jouleprof run`
// Within the folder of this user's, or the system's, running programs. The folder above it may hold
// settings that are to be restored, which must outlive the service.
inline constexpr const char* kServiceSocket = "jouleprof/serve/sampler.sock";
inline constexpr std::size_t kLongestPacket = std::size_t{64} << 10;
inline constexpr std::size_t kMostWindowsInPacket = 2048;

struct Hello {
  int protocol = kHubProtocol;
  bool readings = true;
  Demand demand{};            // of readings
  Duration process_period{};  // zero: processes on the devices are not asked for
};
struct ReadRequest {
  std::uint64_t id = 0;
};
struct Names {
  std::uint32_t first = 0;
  std::vector<std::string> names;
};
struct Devices {
  std::vector<model::DomainId> domains;
};
struct Lost {
  std::uint64_t count = 0;
};
struct Join {
  std::vector<model::DomainId> visible;
};
struct Leave {};
struct Windows {
  pid_t thread = 0;                   // the kernel's id
  std::optional<std::uint32_t> ring;  // its number in the shared rings
  std::vector<model::WindowRecord> windows;
};
using ProgramMessage = std::variant<Hello, ReadRequest, Names, Devices, Lost, Join, Leave, Windows>;

struct Welcome {
  int protocol = kHubProtocol;
  HostTime now{};
  Duration fastest{};
};
struct OfferedDomain {
  model::Domain domain;  // not visible: no program that finds this hub can use it
  bool measured = true;
};
struct Ready {};
struct Refused {
  int protocol = kHubProtocol;
  std::string message;
};
struct ReadDone {
  std::uint64_t id = 0;
};
struct Joined {
  std::string recording;               // its file; empty: none
  std::vector<std::string> variables;  // of the command's environment, each "NAME=value"
};
// A use with pid 0 is that of all processes of other users together.
using GpuUses = std::vector<model::GpuProcessUse>;
using HubMessage = std::variant<Welcome, OfferedDomain, model::Sensor, Ready, Refused, ReadDone,
                                Joined, model::Readings, GpuUses>;

// A text that is no UTF-8 arrives with replacement characters.
std::string encode(const ProgramMessage& message);
std::string encode_windows(pid_t thread, std::optional<std::uint32_t> ring,
                           std::span<const model::WindowRecord> windows);
// Not for readings and uses, which may need several packets.
std::string encode(const HubMessage& message);
std::vector<std::string> encode_readings(const model::Readings& readings);
std::vector<std::string> encode_uses(const GpuUses& uses);

// Errors: corrupt.
Result<ProgramMessage> decode_program_message(std::string_view packet);
Result<HubMessage> decode_hub_message(std::string_view packet);

// How often readings are sent to a program with this demand.
Duration delivery_period(const Demand& demand);
// The demand of two programs together.
Demand joined_demand(const Demand& a, const Demand& b);
// No period below `fastest`.
Demand bounded_demand(Demand demand, Duration fastest);

}  // namespace jouleprof::meters
