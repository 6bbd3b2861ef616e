#include "session/windows/window_protocol.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json/json_reader.h"
#include "model/provenance.h"

namespace jouleprof::session {
namespace {

// Energies and snapshots as the window protocol sends them.

void put(nlohmann::json& object, const Error& error);
Error error_of(JsonFields& fields);

nlohmann::json to_json(const DomainEnergy& energy);
DomainEnergy domain_energy_of(JsonFields& fields);

// The keys time, begin, elapsed and domains.
void put(nlohmann::json& object, const model::Snapshot& snapshot);
model::Snapshot snapshot_of(JsonFields& fields);

using nlohmann::json;
using Fields = JsonFields;

std::int64_t nanoseconds(HostTime t) { return t.time_since_epoch().count(); }

json domain_json(const model::DomainSnapshot& d) {
  Result<model::Measurement> energy = fail(Errc::kUnavailable, d.reason);
  if (d.energy) energy = *d.energy;
  json object = to_json(DomainEnergy{d.domain.id, std::move(energy)});
  object["provenance"] = model::to_string(d.provenance);
  object["begin"] = nanoseconds(d.energy_begin);
  object["end"] = nanoseconds(d.energy_end);
  if (d.power && std::isfinite(d.power->watts())) object["watts"] = d.power->watts();
  if (d.age) object["age"] = d.age->count();
  json gauges = json::object();
  for (const auto& [name, value] : d.gauges) {
    if (std::isfinite(value)) gauges[name] = value;
  }
  object["gauges"] = std::move(gauges);
  return object;
}
model::DomainSnapshot domain_snapshot_of(Fields& fields) {
  model::DomainSnapshot d;
  auto energy = domain_energy_of(fields);
  d.domain.id = energy.domain;
  if (energy.energy) {
    d.energy = std::move(*energy.energy);
  } else {
    d.reason = energy.energy.error().message;
  }
  d.provenance = fields.named("provenance", &model::parse_provenance);
  if (d.energy) d.energy->provenance = d.provenance;
  d.energy_begin = fields.time("begin");
  d.energy_end = fields.time("end");
  if (fields.has("watts")) d.power = Power::watts(fields.number("watts"));
  if (fields.has("age")) d.age = Duration{fields.integer("age")};
  for (auto& [name, value] : fields.numbers("gauges")) d.gauges[name] = value;
  return d;
}

void put(json& object, const Error& error) {
  object["code"] = static_cast<int>(error.code);
  object["message"] = error.message;
}
json to_json(const DomainEnergy& e) {
  json object{{"domain", static_cast<std::uint32_t>(e.domain)}};
  if (!e.energy) {
    put(object, e.energy.error());
    return object;
  }
  object["energy"] = e.energy->energy.microjoules();
  object["error"] = e.energy->error.microjoules();
  object["repeatability"] = e.energy->repeatability.microjoules();
  object["provenance"] = model::to_string(e.energy->provenance);
  object["sensor"] = e.energy->sensor;
  object["method"] = e.energy->method;
  if (e.energy->shift != 0) object["shift"] = e.energy->shift;
  return object;
}
void put(json& object, const model::Snapshot& snapshot) {
  object["time"] = snapshot.time.time_since_epoch().count();
  object["begin"] = nanoseconds(snapshot.begin);
  object["elapsed"] = snapshot.elapsed.count();
  json domains = json::array();
  for (const auto& domain : snapshot.domains) domains.push_back(domain_json(domain));
  object["domains"] = std::move(domains);
}
Error error_of(Fields& fields) {
  return {Errc{static_cast<int>(fields.integer("code", 0, static_cast<int>(Errc::kInternal)))},
          fields.text("message")};
}

DomainEnergy domain_energy_of(Fields& fields) {
  const model::DomainId domain{fields.id("domain")};
  if (fields.has("code")) return {domain, tl::unexpected(error_of(fields))};
  model::Measurement m;
  m.energy = fields.energy("energy");
  m.error = fields.energy("error");
  m.repeatability = fields.energy("repeatability");
  m.provenance = fields.named("provenance", &model::parse_provenance);
  m.sensor = fields.text("sensor");
  m.method = fields.text("method");
  if (fields.has("shift")) m.shift = fields.number("shift");
  return {domain, std::move(m)};
}

model::Snapshot snapshot_of(Fields& fields) {
  model::Snapshot snapshot;
  snapshot.time = RealTime{Duration{fields.integer("time")}};
  snapshot.begin = fields.time("begin");
  snapshot.elapsed = Duration{fields.integer("elapsed", -JsonFields::kMost)};
  for (const json& item : fields.list("domains")) {
    Fields domain(item);
    snapshot.domains.push_back(domain_snapshot_of(domain));
    fields.include(domain);
  }
  return snapshot;
}

using spans::WindowRecord;

constexpr std::size_t kWindowsHeader = 16;
static_assert(sizeof(WindowRecord) == 24 && std::is_trivially_copyable_v<WindowRecord>);
static_assert(kWindowsHeader + kMostWindowsInPacket * sizeof(WindowRecord) <= kLongestPacket);

std::string text_of(const json& message) {
  return message.dump(-1, ' ', false, json::error_handler_t::replace);
}

json to_json(const Hello& m) { return {{"type", "hello"}, {"protocol", m.protocol}}; }
json to_json(const Names& m) { return {{"type", "names"}, {"first", m.first}, {"names", m.names}}; }
json ids_of(const std::vector<model::DomainId>& domains) {
  json ids = json::array();
  for (const auto id : domains) ids.push_back(static_cast<std::uint32_t>(id));
  return ids;
}

json to_json(const Devices& m) { return {{"type", "devices"}, {"domains", ids_of(m.domains)}}; }
json to_json(const Join& m) { return {{"type", "join"}, {"visible", ids_of(m.visible)}}; }
json to_json(const Leave&) { return {{"type", "leave"}}; }
json to_json(const Joined& m) {
  return {{"type", "joined"}, {"recording", m.recording}, {"variables", m.variables}};
}
json to_json(const Lost& m) { return {{"type", "lost"}, {"count", m.count}}; }
json to_json(const Windows&) { return {}; }  // they are binary
json to_json(const EnergyQuestion& m) {
  return {{"type", "energy"},
          {"id", m.id},
          {"begin", nanoseconds(m.begin)},
          {"end", nanoseconds(m.end)},
          {"deadline", nanoseconds(m.deadline)}};
}
json to_json(const TotalQuestion& m) {
  return {{"type", "total"}, {"id", m.id}, {"name", m.name}, {"deadline", nanoseconds(m.deadline)}};
}

json to_json(const SnapshotQuestion& m) {
  return {{"type", "snapshot"}, {"id", m.id}, {"since", nanoseconds(m.since)}};
}

json to_json(const OfferedDomain& offered) {
  const model::Domain& d = offered.domain;
  json object{{"id", static_cast<std::uint32_t>(d.id)},
              {"kind", model::to_string(d.kind)},
              {"device", d.device},
              {"name", d.name},
              {"uuid", d.uuid},
              {"unavailable_reason", d.unavailable_reason},
              {"measured", offered.measured}};
  if (d.parent) object["parent"] = static_cast<std::uint32_t>(*d.parent);
  return object;
}
json to_json(const Welcome& m) {
  json domains = json::array();
  for (const auto& offered : m.domains) domains.push_back(to_json(offered));
  return {{"type", "welcome"}, {"protocol", m.protocol}, {"domains", std::move(domains)}};
}
json to_json(const Refused& m) {
  return {{"type", "refused"}, {"protocol", m.protocol}, {"message", m.message}};
}

json to_json(const Answer& m) {
  json object{{"type", "answer"}, {"id", m.id}};
  if (!m.found) {
    put(object, m.found.error());
    return object;
  }
  if (m.found->snapshot) {
    put(object, *m.found->snapshot);
    return object;
  }
  json energies = json::array();
  for (const auto& e : m.found->energies) energies.push_back(to_json(e));
  object["energies"] = std::move(energies);
  object["count"] = m.found->count;
  object["resolved"] = m.found->resolved_count;
  object["nanoseconds"] = m.found->length.count();
  return object;
}

OfferedDomain domain_of(Fields& fields) {
  OfferedDomain offered;
  model::Domain& d = offered.domain;
  d.id = model::DomainId{fields.id("id")};
  d.kind = fields.named("kind", &model::parse_domain_kind);
  d.device = fields.text("device");
  d.name = fields.text("name");
  d.uuid = fields.text("uuid");
  d.unavailable_reason = fields.text("unavailable_reason");
  if (fields.has("parent")) d.parent = model::DomainId{fields.id("parent")};
  offered.measured = fields.flag("measured");
  return offered;
}

Answer answer_of(Fields& fields) {
  const std::uint64_t id = fields.count("id");
  if (fields.has("code")) return {id, tl::unexpected(error_of(fields))};
  FoundEnergies found;
  if (fields.has("domains")) {
    found.snapshot = snapshot_of(fields);
    return {id, std::move(found)};
  }
  for (const json& item : fields.list("energies")) {
    Fields energy(item);
    found.energies.push_back(domain_energy_of(energy));
    fields.include(energy);
  }
  found.count = fields.count("count");
  found.resolved_count = fields.count("resolved");
  found.length = Duration{fields.integer("nanoseconds")};
  return {id, std::move(found)};
}

Welcome welcome_of(Fields& fields) {
  Welcome welcome;
  welcome.protocol = static_cast<int>(fields.integer("protocol", 0, 1'000'000));
  // Another version may describe domains otherwise.
  if (welcome.protocol != kWindowProtocol) return welcome;
  for (const json& item : fields.list("domains")) {
    Fields domain(item);
    welcome.domains.push_back(domain_of(domain));
    fields.include(domain);
  }
  return welcome;
}

Names names_of(Fields& fields) {
  Names names;
  names.first = fields.id("first");
  for (const json& item : fields.list("names")) {
    if (!item.is_string()) {
      fields.refuse();
      break;
    }
    names.names.push_back(item.get<std::string>());
  }
  if (names.names.size() > static_cast<std::size_t>(JsonFields::kMostId - names.first))
    fields.refuse();
  return names;
}

std::vector<model::DomainId> ids_in(Fields& fields, const char* key) {
  std::vector<model::DomainId> ids;
  for (const json& item : fields.list(key)) {
    const bool is_id =
        item.is_number_unsigned() && item.get<std::uint64_t>() <= JsonFields::kMostId;
    if (!is_id) {
      fields.refuse();
      break;
    }
    ids.push_back(model::DomainId{item.get<std::uint32_t>()});
  }
  return ids;
}

Joined joined_of(Fields& fields) {
  Joined joined{fields.text("recording"), {}};
  for (const json& item : fields.list("variables")) {
    if (!item.is_string()) {
      fields.refuse();
      break;
    }
    joined.variables.push_back(item.get<std::string>());
  }
  return joined;
}

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
  return text_of(std::visit([](const auto& m) { return to_json(m); }, message));
}

std::string encode(const ToolMessage& message) {
  return text_of(std::visit([](const auto& m) { return to_json(m); }, message));
}

Result<ProgramMessage> decode_program_message(std::string_view packet) {
  if (packet.starts_with('W')) return decode_windows(packet);
  const json message = json::parse(packet, nullptr, false);
  Fields fields(message);
  const std::string type = fields.text("type");
  ProgramMessage out;
  if (type == "hello") {
    out = Hello{static_cast<int>(fields.integer("protocol", 0, 1'000'000))};
  } else if (type == "names") {
    out = names_of(fields);
  } else if (type == "devices") {
    out = Devices{ids_in(fields, "domains")};
  } else if (type == "join") {
    out = Join{ids_in(fields, "visible")};
  } else if (type == "leave") {
    out = Leave{};
  } else if (type == "lost") {
    out = Lost{fields.count("count")};
  } else if (type == "energy") {
    out = EnergyQuestion{fields.count("id"), fields.time("begin"), fields.time("end"),
                         fields.time("deadline")};
  } else if (type == "total") {
    out = TotalQuestion{fields.count("id"), fields.id("name"), fields.time("deadline")};
  } else if (type == "snapshot") {
    out = SnapshotQuestion{fields.count("id"), fields.time("since"), {}};
  } else {
    fields.refuse();
  }
  if (!fields.good()) return not_understood(packet);
  return out;
}

Result<ToolMessage> decode_tool_message(std::string_view packet) {
  const json message = json::parse(packet, nullptr, false);
  Fields fields(message);
  const std::string type = fields.text("type");
  ToolMessage out;
  if (type == "welcome") {
    out = welcome_of(fields);
  } else if (type == "refused") {
    out =
        Refused{static_cast<int>(fields.integer("protocol", 0, 1'000'000)), fields.text("message")};
  } else if (type == "joined") {
    out = joined_of(fields);
  } else if (type == "answer") {
    out = answer_of(fields);
  } else {
    fields.refuse();
  }
  if (!fields.good()) return not_understood(packet);
  return out;
}

}  // namespace jouleprof::session
