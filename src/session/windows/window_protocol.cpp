#include "session/windows/window_protocol.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "model/field_json.h"

namespace jouleprof::session {
using model::Either;
using model::Version;

void fields(Either<Hello> auto& m, auto&& field) { field("protocol", m.protocol); }
void fields(Either<Names> auto& m, auto&& field) {
  field("first", m.first);
  field("names", m.names);
}
void fields(Either<Devices> auto& m, auto&& field) { field("domains", m.domains); }
void fields(Either<Join> auto& m, auto&& field) { field("visible", m.visible); }
void fields(Either<Leave> auto&, auto&&) {}
void fields(Either<Lost> auto& m, auto&& field) { field("count", m.count); }
void fields(Either<EnergyQuestion> auto& m, auto&& field) {
  field("id", m.id);
  field("begin", m.begin);
  field("end", m.end);
  field("deadline", m.deadline);
}
void fields(Either<TotalQuestion> auto& m, auto&& field) {
  field("id", m.id);
  field("name", m.name);
  field("deadline", m.deadline);
}
void fields(Either<SnapshotQuestion> auto& m, auto&& field) {
  field("id", m.id);
  field("since", m.since);
}

void fields(Either<OfferedDomain> auto& offered, auto&& field) {
  fields(offered.domain, field);
  field("measured", offered.measured);
}
void fields(Either<Welcome> auto& m, auto&& field) {
  field("protocol", Version{m.protocol, kWindowProtocol});
  field("domains", m.domains);
}
void fields(Either<Refused> auto& m, auto&& field) {
  field("protocol", m.protocol);
  field("message", m.message);
}
void fields(Either<DomainEnergy> auto& e, auto&& field) {
  field("domain", e.domain);
  field.either(e.energy);
}
void fields(Either<FoundEnergies> auto& found, auto&& field) {
  field("energies", found.energies);
  field("count", found.count);
  field("resolved", found.resolved_count);
  field("nanoseconds", found.length);
  field("snapshot", found.snapshot);
}
void fields(Either<Answer> auto& m, auto&& field) {
  field("id", m.id);
  field.either(m.found);
}
void fields(Either<Joined> auto& m, auto&& field) {
  field("recording", m.recording);
  field("variables", m.variables);
}

namespace {

constexpr std::array kProgramTypes{"hello", "names",  "devices", "join",    "leave",
                                   "lost",  "energy", "total",   "snapshot"};
constexpr std::array kToolTypes{"welcome", "refused", "answer", "joined"};

using spans::WindowRecord;

constexpr std::size_t kWindowsHeader = 16;
static_assert(sizeof(WindowRecord) == 24 && std::is_trivially_copyable_v<WindowRecord>);
static_assert(kWindowsHeader + kMostWindowsInPacket * sizeof(WindowRecord) <= kLongestPacket);

tl::unexpected<Error> not_understood(std::string_view packet) {
  return fail(Errc::kCorrupt, fmt::format("a message of {} bytes is not valid", packet.size()));
}

Result<ProgramMessage> decode_windows(std::string_view packet) {
  std::uint32_t count = 0;
  std::int32_t thread = 0;
  std::uint32_t number = 0;
  if (packet.size() < kWindowsHeader) return not_understood(packet);
  std::memcpy(&count, packet.data() + 4, sizeof count);
  std::memcpy(&thread, packet.data() + 8, sizeof thread);
  std::memcpy(&number, packet.data() + 12, sizeof number);
  if (number > spans::SharedRings::kMost) return not_understood(packet);
  if (count > kMostWindowsInPacket ||
      packet.size() != kWindowsHeader + count * sizeof(WindowRecord)) {
    return not_understood(packet);
  }
  Windows windows{thread, {}, std::vector<WindowRecord>(count)};
  if (number > 0) windows.ring = number - 1;
  if (count > 0) {
    std::memcpy(windows.windows.data(), packet.data() + kWindowsHeader,
                count * sizeof(WindowRecord));
  }
  return windows;
}

}  // namespace

std::string encode_windows(pid_t thread, std::optional<std::uint32_t> ring,
                           std::span<const WindowRecord> windows) {
  std::string packet(kWindowsHeader + windows.size_bytes(), '\0');
  const auto count = static_cast<std::uint32_t>(windows.size());
  const std::int32_t kernel_id = thread;
  packet[0] = 'W';
  std::memcpy(packet.data() + 4, &count, sizeof count);
  std::memcpy(packet.data() + 8, &kernel_id, sizeof kernel_id);
  const std::uint32_t number = ring ? *ring + 1 : 0;
  std::memcpy(packet.data() + 12, &number, sizeof number);
  if (!windows.empty()) {
    std::memcpy(packet.data() + kWindowsHeader, windows.data(), windows.size_bytes());
  }
  return packet;
}

std::string encode(const ProgramMessage& message) {
  if (const auto* windows = std::get_if<Windows>(&message)) {
    return encode_windows(windows->thread, windows->ring, windows->windows);
  }
  return model::message_text(message, kProgramTypes);
}

std::string encode(const ToolMessage& message) { return model::message_text(message, kToolTypes); }

Result<ProgramMessage> decode_program_message(std::string_view packet) {
  if (packet.starts_with('W')) return decode_windows(packet);
  auto message = model::message_of<ProgramMessage>(packet, kProgramTypes);
  if (!message) return not_understood(packet);
  const auto* names = std::get_if<Names>(&*message);
  const auto most = std::numeric_limits<std::uint32_t>::max();
  if (names != nullptr && names->names.size() > most - names->first) return not_understood(packet);
  return std::move(*message);
}

Result<ToolMessage> decode_tool_message(std::string_view packet) {
  auto message = model::message_of<ToolMessage>(packet, kToolTypes);
  if (!message) return not_understood(packet);
  return std::move(*message);
}

}  // namespace jouleprof::session
