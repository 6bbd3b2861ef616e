// What programs and a hub send each other. An odd first byte: a
// program's message, which a service reads with the rights of its administrator.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "meters/shared/hub_protocol.h"
#include "tests/support/fuzz_encoding.h"
#include "tests/support/fuzz_files.h"

using namespace jouleprof;
using namespace jouleprof::meters;
using namespace std::chrono_literals;

namespace {

std::string seed_of(const HubMessage& message) { return std::string(1, '\0') + encode(message); }

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const Hello hello{kHubProtocol, true, {50ms, 20ms, 100ms, 900ms, 250ms}, 900ms};
  write_seed("hello", "\x01" + encode(ProgramMessage(hello)));
  const ProgramMessage messages[] = {
      ReadRequest{7}, Names{0, {"epoch", "step"}}, Devices{{model::DomainId{1}}},
      Lost{3},        Join{{model::DomainId{1}}},  Leave{}};
  for (const auto& message : messages) {
    write_seed("program" + std::to_string(message.index()), "\x01" + encode(message));
  }
  write_seed("windows", "\x01" + encode_windows(77, 5u, std::vector<model::WindowRecord>(3)));
  model::Domain domain;
  domain.device = "gpu0";
  domain.known_levels.rest =
      model::KnownLevel{Power::watts(70), Power::watts(0.3), 41.5, RealTime{5ns}};
  model::Sensor sensor;
  sensor.traits.refresh = 20ms;
  sensor.traits.wrap = Energy::joules(262143.3);
  write_seed("welcome", seed_of(Welcome{}));
  write_seed("domain", seed_of(OfferedDomain{domain, true}));
  write_seed("sensor", seed_of(sensor));
  write_seed("refused", seed_of(Refused{kHubProtocol, "why"}));
  write_seed("done", seed_of(ReadDone{3}));
  write_seed("joined", seed_of(Joined{"x.jprof", {"A=b"}}));
  model::Readings readings;
  const HostTime at{1h};
  readings.counters.push_back({sensor.id, at, at + 1ms, Energy::joules(5)});
  readings.powers.push_back({sensor.id, at, Power::watts(300)});
  readings.gauges.push_back({sensor.id, at, 1.5});
  readings.failures.push_back({sensor.id, at, {Errc::kUnavailable, "lost"}});
  write_seed("readings", std::string(1, '\0') + encode_readings(readings).at(0));
  write_seed("uses", std::string(1, '\0') + encode_uses(GpuUses(2)).at(0));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view packet(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) {
    const auto message = decode_program_message(packet);
    if (!message) return 0;
    if (std::holds_alternative<Windows>(*message)) return 0;  // binary
    check_encoding(*message, &decode_program_message);
    if (const auto* hello = std::get_if<Hello>(&*message)) {
      const auto demand = bounded_demand(hello->demand, 100ms);
      if (demand.shortest_window < 100ms || delivery_period(demand) < 100ms) std::abort();
    }
    return 0;
  }
  const auto message = decode_hub_message(packet);
  if (!message) return 0;
  const bool is_binary = std::holds_alternative<model::Readings>(*message) ||
                         std::holds_alternative<GpuUses>(*message);
  if (!is_binary) check_encoding(*message, &decode_hub_message);
  return 0;
}
