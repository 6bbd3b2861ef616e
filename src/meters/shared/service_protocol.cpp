#include "meters/shared/service_protocol.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json/json_fields.h"
#include "meters/shared/reading_packets.h"

namespace jouleprof::meters {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using Fields = JsonFields;

constexpr std::int64_t kLongestPeriod = std::int64_t{3'600'000'000'000};

std::string text_of(const json& message) {
  return message.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::int64_t nanoseconds(HostTime t) { return t.time_since_epoch().count(); }

json to_json(const ServiceHello& m) {
  return {{"type", "hello"},
          {"protocol", m.protocol},
          {"shortest", m.demand.shortest_window.count()},
          {"poll", m.demand.poll_period.count()},
          {"counter", m.demand.counter_period.count()},
          {"sample", m.demand.sample_period.count()},
          {"state", m.demand.state_period.count()},
          {"processes", m.process_period.count()}};
}
json to_json(const ReadRequest& m) { return {{"type", "read"}, {"id", m.id}}; }

json to_json(const ServiceWelcome& m) {
  return {{"type", "welcome"},
          {"protocol", m.protocol},
          {"now", nanoseconds(m.now)},
          {"fastest", m.fastest.count()}};
}
json to_json(const ServiceReady&) { return {{"type", "ready"}}; }
json to_json(const ServiceRefusal& m) {
  return {{"type", "refused"}, {"protocol", m.protocol}, {"message", m.message}};
}
json to_json(const ReadDone& m) { return {{"type", "done"}, {"id", m.id}}; }
json to_json(const model::Readings&) { return {}; }  // they are binary
json to_json(const GpuUses&) { return {}; }

void put(json& object, const char* key, const std::optional<model::KnownLevel>& level) {
  if (!level) return;
  object[key] = {{"watts", level->power.watts()},
                 {"spread", level->spread.watts()},
                 {"observed", level->observed.time_since_epoch().count()}};
  if (level->temperature_celsius) object[key]["celsius"] = *level->temperature_celsius;
}
json to_json(const model::Domain& d) {
  json object{{"type", "domain"},
              {"id", static_cast<std::uint32_t>(d.id)},
              {"kind", model::to_string(d.kind)},
              {"device", d.device},
              {"name", d.name},
              {"uuid", d.uuid},
              {"reason", d.unavailable_reason}};
  if (d.parent) object["parent"] = static_cast<std::uint32_t>(*d.parent);
  put(object, "rest", d.known_levels.rest);
  put(object, "held", d.known_levels.held);
  return object;
}

void put(json& object, const char* key, const std::optional<Duration>& trait) {
  if (trait) object[key] = trait->count();
}
json to_json(const model::Sensor& s) {
  json object{{"type", "sensor"},
              {"id", static_cast<std::uint32_t>(s.id)},
              {"domain", static_cast<std::uint32_t>(s.domain)},
              {"kind", model::to_string(s.kind)},
              {"name", s.name},
              {"provenance", model::to_string(s.provenance)},
              {"quantum", s.traits.quantum.microjoules()},
              {"gain_error", s.traits.gain_error}};
  put(object, "refresh", s.traits.refresh);
  put(object, "window", s.traits.window);
  put(object, "lag", s.traits.lag);
  put(object, "rise", s.traits.rise);
  put(object, "read_cost", s.traits.read_cost);
  if (s.traits.wrap) object["wrap"] = s.traits.wrap->microjoules();
  return object;
}

Duration period_of(Fields& fields, const char* key) {
  return Duration{fields.integer(key, 0, kLongestPeriod)};
}

ServiceHello hello_of(Fields& fields) {
  ServiceHello hello;
  hello.protocol = static_cast<int>(fields.integer("protocol", 0, 1'000'000));
  if (hello.protocol != kServiceProtocol) return hello;  // another version's has other keys
  hello.demand.shortest_window = period_of(fields, "shortest");
  hello.demand.poll_period = period_of(fields, "poll");
  hello.demand.counter_period = period_of(fields, "counter");
  hello.demand.sample_period = period_of(fields, "sample");
  hello.demand.state_period = period_of(fields, "state");
  hello.process_period = period_of(fields, "processes");
  return hello;
}

std::optional<model::KnownLevel> level_of(Fields& fields, const json& object, const char* key) {
  if (!fields.has(key)) return std::nullopt;
  Fields level(object.at(key));
  model::KnownLevel out;
  out.power = Power::watts(level.number("watts"));
  out.spread = Power::watts(level.number("spread"));
  out.observed = RealTime{Duration{level.integer("observed", -Fields::kMost)}};
  if (level.has("celsius")) out.temperature_celsius = level.number("celsius");
  fields.include(level);
  return out;
}

model::Domain domain_of(Fields& fields, const json& object) {
  model::Domain d;
  d.id = model::DomainId{fields.id("id")};
  d.kind = fields.named("kind", &model::parse_domain_kind);
  d.device = fields.text("device");
  d.name = fields.text("name");
  d.uuid = fields.text("uuid");
  d.unavailable_reason = fields.text("reason");
  if (fields.has("parent")) d.parent = model::DomainId{fields.id("parent")};
  d.known_levels = {level_of(fields, object, "rest"), level_of(fields, object, "held")};
  return d;
}

std::optional<Duration> trait_of(Fields& fields, const char* key) {
  if (!fields.has(key)) return std::nullopt;
  return Duration{fields.integer(key)};
}

model::Sensor sensor_of(Fields& fields) {
  model::Sensor s;
  s.id = model::SensorId{fields.id("id")};
  s.domain = model::DomainId{fields.id("domain")};
  s.kind = fields.named("kind", &model::parse_sensor_kind);
  s.name = fields.text("name");
  s.provenance = fields.named("provenance", &model::parse_provenance);
  s.traits.quantum = fields.energy("quantum");
  s.traits.gain_error = fields.number("gain_error");
  s.traits.refresh = trait_of(fields, "refresh");
  s.traits.window = trait_of(fields, "window");
  s.traits.lag = trait_of(fields, "lag");
  s.traits.rise = trait_of(fields, "rise");
  s.traits.read_cost = trait_of(fields, "read_cost");
  if (fields.has("wrap")) s.traits.wrap = fields.energy("wrap");
  return s;
}

tl::unexpected<Error> not_understood() {
  return fail(Errc::kCorrupt, "a message of the sensors' service has an unknown form");
}

std::optional<ServiceMessage> service_message_of(const std::string& type, Fields& fields,
                                                 const json& object) {
  if (type == "welcome") {
    ServiceWelcome welcome;
    welcome.protocol = static_cast<int>(fields.integer("protocol", 0, 1'000'000));
    if (welcome.protocol != kServiceProtocol) return welcome;
    welcome.now = fields.time("now");
    welcome.fastest = period_of(fields, "fastest");
    return welcome;
  }
  if (type == "domain") return domain_of(fields, object);
  if (type == "sensor") return sensor_of(fields);
  if (type == "ready") return ServiceReady{};
  if (type == "done") return ReadDone{fields.count("id")};
  if (type == "refused") {
    return ServiceRefusal{static_cast<int>(fields.integer("protocol", 0, 1'000'000)),
                          fields.text("message")};
  }
  return std::nullopt;
}

// The shorter of two periods, of which zero stands for `usual`.
Duration shorter(Duration a, Duration b, Duration usual) {
  const auto value = [usual](Duration d) { return d > Duration{} ? d : usual; };
  return value(a) <= value(b) ? a : b;
}

}  // namespace

std::string encode(const ProgramMessage& message) {
  return std::visit([](const auto& m) { return text_of(to_json(m)); }, message);
}

std::string encode(const ServiceMessage& message) {
  return std::visit([](const auto& m) { return text_of(to_json(m)); }, message);
}

Result<ProgramMessage> decode_program_message(std::string_view packet) {
  const json object = json::parse(packet, nullptr, false);
  Fields fields(object);
  const std::string type = fields.text("type");
  ProgramMessage message;
  if (type == "hello") {
    message = hello_of(fields);
  } else if (type == "read") {
    message = ReadRequest{fields.count("id")};
  } else {
    fields.refuse();
  }
  if (!fields.good()) return not_understood();
  return message;
}

Result<ServiceMessage> decode_service_message(std::string_view packet) {
  if (packet.starts_with(shared::kReadingsPacket)) return shared::decode_readings(packet);
  if (packet.starts_with(shared::kUsesPacket)) return shared::decode_uses(packet);
  const json object = json::parse(packet, nullptr, false);
  Fields fields(object);
  auto message = service_message_of(fields.text("type"), fields, object);
  if (!message || !fields.good()) return not_understood();
  return std::move(*message);
}

Duration delivery_period(const Demand& demand) {
  return std::clamp<Duration>(demand.shortest_window, 100ms, 900ms);
}

Demand joined_demand(const Demand& a, const Demand& b) {
  Demand out;
  out.shortest_window = std::min(a.shortest_window, b.shortest_window);
  out.poll_period = shorter(a.poll_period, b.poll_period, 100ms);
  out.counter_period = shorter(a.counter_period, b.counter_period, 5s);
  out.sample_period = shorter(a.sample_period, b.sample_period, 900ms);
  out.state_period = shorter(a.state_period, b.state_period, 900ms);
  return out;
}

Demand bounded_demand(Demand demand, Duration fastest) {
  // Below a second, some sensors are polled every 10 ms.
  if (demand.shortest_window < 1s && demand.poll_period == Duration{} && fastest > 10ms) {
    demand.poll_period = fastest;
  }
  demand.shortest_window = std::max(demand.shortest_window, fastest);
  for (Duration* const period :
       {&demand.poll_period, &demand.counter_period, &demand.sample_period, &demand.state_period}) {
    if (*period > Duration{}) *period = std::max(*period, fastest);
  }
  return demand;
}

}  // namespace jouleprof::meters
