// What programs under `jouleprof run` and the tool send each other. An odd first byte: a program's
// message.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "session/windows/window_protocol.h"
#include "tests/support/fuzz_encoding.h"
#include "tests/support/fuzz_files.h"

using namespace jouleprof;
using namespace jouleprof::session;
using namespace std::chrono_literals;

namespace {

std::string seed_of(const ToolMessage& message) { return std::string(1, '\0') + encode(message); }

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const ProgramMessage messages[] = {Hello{},
                                     Names{0, {"epoch", "step"}},
                                     Devices{{model::DomainId{1}}},
                                     Join{{model::DomainId{1}}},
                                     Leave{},
                                     Lost{3},
                                     EnergyQuestion{1, HostTime{1s}, HostTime{2s}, HostTime{3s}},
                                     TotalQuestion{2, 0, HostTime{3s}},
                                     SnapshotQuestion{3, HostTime{1s}, {}}};
  int number = 0;
  for (const auto& message : messages) {
    write_seed("program" + std::to_string(number++), "\x01" + encode(message));
  }
  write_seed("windows", "\x01" + encode_windows(77, 5u, std::vector<spans::WindowRecord>(3)));
  write_seed("welcome", seed_of(Welcome{kWindowProtocol, {OfferedDomain{}}}));
  write_seed("refused", seed_of(Refused{kWindowProtocol, "why"}));
  write_seed(
      "answer",
      seed_of(Answer{
          1, FoundEnergies{{{model::DomainId{}, model::Measurement{}}}, 1, 1, Duration{5}, {}}}));
  write_seed("error", seed_of(Answer{1, fail(Errc::kTimeout, "late")}));
  write_seed("joined", seed_of(Joined{"x.jprof", {"A=b"}}));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view packet(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) {
    const auto message = session::decode_program_message(packet);
    const bool is_binary = message && std::holds_alternative<Windows>(*message);
    if (message && !is_binary) check_encoding(*message, &session::decode_program_message);
  } else {
    const auto message = decode_tool_message(packet);
    if (message) check_encoding(*message, &decode_tool_message);
  }
  return 0;
}
