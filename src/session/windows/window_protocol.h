// The messages between programs under `jouleprof run` and the tool.
//
// The tool listens on a Unix socket of type SOCK_SEQPACKET, whose path is in the environment
// variable JOULEPROF_SESSION of the command. Each packet is one message of at most kLongestPacket
// bytes. Times are nanoseconds of CLOCK_MONOTONIC, energies microjoules.
//
// Windows are binary, in the machine's byte order: 'W', three zero bytes, the number of records,
// the kernel's id of their thread, the number of their ring plus 1, or 0 without one (32 bits
// each), then the records (WindowRecord). The hello may bring a file descriptor with the program's
// rings (spans/windows/shared_rings.h): from them come the windows that a program that dies did not
// send, and the names of those that it did not end. Every other message is a JSON object with a
// "type":
//
//   program -> tool
//     hello     protocol                     the first message
//     names     first, names                 the texts of the names numbered first, first + 1, ...
//     devices   domains                      what its windows are charged with; default: all
//     lost      count                        windows that the program could not send in time
//     energy    id, begin, end, deadline     requests the energy of an interval ...
//     total     id, name, deadline           ... or of all windows of a name so far; answered when
//                                            it is known, or at the deadline with what is known
//     snapshot  id, since                    requests what is known now; energies count from
//     `since`
//     join      visible                      another `jouleprof run` of the job asks to take part;
//                                            the connection's end ends that
//     leave                                  its command has ended; the tool ends the connection
//                                            once it has looked at the processes
//   tool -> program
//     joined    recording, variables         the answer to join, once the work has begun
//     welcome   protocol, domains            every domain of the machine; "measured" where the tool
//                                            measures it
//     refused   protocol, message            the connection then ends
//     answer    id, energies, count, resolved, nanoseconds[, snapshot]
//     answer    id, code, message            an error: the code is that of Errc
//
// An energy is an object with "domain" and either the fields of a measurement, or code and message
// (model/record_fields.h). On any other message, close the connection.
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

#include "analysis/live/window_totals.h"
#include "base/result.h"
#include "model/domain.h"
#include "model/snapshot.h"
#include "spans/windows/shared_rings.h"

namespace jouleprof::session {

inline constexpr int kWindowProtocol = 6;  // any change is a new one
inline constexpr const char* kSessionVariable = "JOULEPROF_SESSION";
inline constexpr std::size_t kLongestPacket = std::size_t{64} << 10;
inline constexpr std::size_t kMostWindowsInPacket = 2048;

struct Hello {
  int protocol = kWindowProtocol;
};
struct Names {
  std::uint32_t first = 0;
  std::vector<std::string> names;
};
struct Devices {
  std::vector<model::DomainId> domains;
};
struct Join {
  std::vector<model::DomainId> visible;  // to its command
};
struct Leave {};
struct Lost {
  std::uint64_t count = 0;
};
struct Windows {
  pid_t thread = 0;
  std::optional<std::uint32_t> ring;
  std::vector<spans::WindowRecord> windows;
};
struct EnergyQuestion {
  std::uint64_t id = 0;
  HostTime begin{};
  HostTime end{};
  HostTime deadline{};
};
struct TotalQuestion {
  std::uint64_t id = 0;
  std::uint32_t name = 0;
  HostTime deadline{};
};
struct SnapshotQuestion {
  std::uint64_t id = 0;
  HostTime since{};
  HostTime deadline{};  // is not sent: the answer comes at once
};
using ProgramMessage = std::variant<Hello, Names, Devices, Join, Leave, Lost, EnergyQuestion,
                                    TotalQuestion, SnapshotQuestion, Windows>;

struct OfferedDomain {
  model::Domain domain;
  bool measured = true;
};
struct Welcome {
  int protocol = kWindowProtocol;
  std::vector<OfferedDomain> domains;
};
struct Refused {
  int protocol = kWindowProtocol;
  std::string message;
};
struct DomainEnergy {
  model::DomainId domain{};
  Result<model::Measurement> energy;
};
struct FoundEnergies {
  std::vector<DomainEnergy> energies;
  std::uint64_t count = 0;  // of a total; otherwise 0, as the next two
  std::uint64_t resolved_count = 0;
  Duration length{};
  // Of a snapshot question; of each domain only the id is sent.
  std::optional<model::Snapshot> snapshot;
};
struct Answer {
  std::uint64_t id = 0;
  Result<FoundEnergies> found;
};
struct Joined {
  std::string recording;               // its file; empty: none
  std::vector<std::string> variables;  // of the command's environment, each "NAME=value"
};
using ToolMessage = std::variant<Welcome, Refused, Answer, Joined>;

// A text that is no UTF-8 arrives with replacement characters.
std::string encode(const ProgramMessage& message);
std::string encode(const ToolMessage& message);
std::string encode_windows(pid_t thread, std::optional<std::uint32_t> ring,
                           std::span<const spans::WindowRecord> windows);

// Errors: corrupt.
Result<ProgramMessage> decode_program_message(std::string_view packet);
Result<ToolMessage> decode_tool_message(std::string_view packet);

}  // namespace jouleprof::session
