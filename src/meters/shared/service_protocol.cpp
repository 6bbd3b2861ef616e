#include "meters/shared/service_protocol.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/bytes.h"
#include "base/json/json_reader.h"

namespace jouleprof::meters::shared {

// Readings and uses of GPUs as packets: numbers as in base/bytes.h, times as differences.

// The first byte of a packet; JSON begins with '{'.
inline constexpr char kReadingsPacket = 'R';
inline constexpr char kUsesPacket = 'U';

// Errors: corrupt.
Result<model::Readings> decode_readings(std::string_view packet);
Result<GpuUses> decode_uses(std::string_view packet);

}  // namespace jouleprof::meters::shared

namespace jouleprof::meters {

namespace shared {
namespace {

constexpr std::size_t kFull = kLongestServicePacket - 1024;  // no record is longer than the rest
constexpr std::size_t kLongestText = 500;

enum class Tag : std::uint64_t { kCounter, kPower, kGauge, kFailure };

class PacketWriter {
 public:
  explicit PacketWriter(char kind) : kind_(kind) {}

  // Begins a record.
  void begin(HostTime at) {
    if (packets_.empty() || packets_.back().size() > kFull) {
      packets_.emplace_back(1, kind_);
      time_ = HostTime{};
    }
    put(at - time_);
    time_ = at;
  }
  void put(std::uint64_t value) { put_varint(packets_.back(), value); }
  void put(Duration d) { put(zigzag(d.count())); }
  void put(Energy energy) { put(zigzag(energy.microjoules())); }
  void put(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) {
      packets_.back().push_back(static_cast<char>(bits >> shift));
    }
  }
  void put(std::string_view text) {
    text = text.substr(0, kLongestText);
    put(std::uint64_t{text.size()});
    packets_.back() += text;
  }
  std::vector<std::string> packets() && { return std::move(packets_); }

 private:
  char kind_;
  HostTime time_{};
  std::vector<std::string> packets_;
};

// good() says whether all values were there and fit.
class PacketReader {
 public:
  explicit PacketReader(std::string_view packet)
      : at_(packet.data() + 1), end_(packet.data() + packet.size()) {}

  bool good() const { return good_; }
  bool has_more() const { return good_ && at_ != end_; }

  std::uint64_t number(std::uint64_t highest = std::numeric_limits<std::uint64_t>::max()) {
    std::uint64_t value = 0;
    good_ = good_ && take_varint(at_, end_, value) && value <= highest;
    return good_ ? value : 0;
  }
  std::int64_t integer() { return unzigzag(number()); }
  HostTime time() {
    std::int64_t sum = 0;
    good_ = !__builtin_add_overflow(time_.time_since_epoch().count(), integer(), &sum) && good_;
    return time_ = HostTime{Duration{good_ ? sum : 0}};
  }
  HostTime time_after(HostTime begin) {
    const std::uint64_t length = number(std::uint64_t{1} << 60);
    std::int64_t sum = 0;
    good_ = !__builtin_add_overflow(begin.time_since_epoch().count(),
                                    static_cast<std::int64_t>(length), &sum) &&
            good_;
    return HostTime{Duration{good_ ? sum : 0}};
  }
  model::SensorId sensor() { return model::SensorId{id()}; }
  model::DomainId domain() { return model::DomainId{id()}; }
  double real() {
    if (!good_ || end_ - at_ < 8) return refuse(), 0;
    std::uint64_t bits = 0;
    for (int shift = 0; shift < 64; shift += 8) {
      bits |= std::uint64_t{static_cast<unsigned char>(*at_++)} << shift;
    }
    const double value = std::bit_cast<double>(bits);
    if (!std::isfinite(value)) refuse();
    return value;
  }
  std::string text() {
    const std::uint64_t size = number(kLongestText);
    if (!good_ || static_cast<std::uint64_t>(end_ - at_) < size) return refuse(), std::string{};
    std::string out(at_, size);
    at_ += size;
    return out;
  }
  void refuse() { good_ = false; }

 private:
  std::uint32_t id() {
    return static_cast<std::uint32_t>(number(std::numeric_limits<std::uint32_t>::max()));
  }

  const char* at_;
  const char* end_;
  HostTime time_{};
  bool good_ = true;
};

tl::unexpected<Error> broken() {
  return fail(Errc::kCorrupt, "readings from the service cannot be decoded");
}

void decode_reading(PacketReader& in, model::Readings& out) {
  const HostTime at = in.time();
  const auto tag = static_cast<Tag>(in.number());
  const model::SensorId sensor = in.sensor();
  switch (tag) {
    case Tag::kCounter: {
      const HostTime after = in.time_after(at);
      out.counters.push_back({sensor, at, after, Energy::microjoules(in.integer())});
      return;
    }
    case Tag::kPower:
      out.powers.push_back({sensor, at, Power::watts(in.real())});
      return;
    case Tag::kGauge:
      out.gauges.push_back({sensor, at, in.real()});
      return;
    case Tag::kFailure: {
      const auto code = static_cast<Errc>(in.number(static_cast<std::uint64_t>(Errc::kInternal)));
      out.failures.push_back({sensor, at, {code, in.text()}});
      return;
    }
  }
  in.refuse();
}

}  // namespace

Result<model::Readings> decode_readings(std::string_view packet) {
  PacketReader in(packet);
  model::Readings out;
  while (in.has_more()) decode_reading(in, out);
  if (!in.good()) return broken();
  return out;
}

Result<GpuUses> decode_uses(std::string_view packet) {
  PacketReader in(packet);
  GpuUses out;
  while (in.has_more()) {
    model::GpuProcessUse use;
    use.at = in.time();
    use.pid = static_cast<pid_t>(in.number(std::numeric_limits<pid_t>::max()));
    use.domain = in.domain();
    if (in.number(1) == 1) use.compute_utilisation = in.real();
    if (in.number(1) == 1) use.memory_bytes = in.number();
    out.push_back(use);
  }
  if (!in.good()) return broken();
  return out;
}

}  // namespace shared

std::vector<std::string> encode_readings(const model::Readings& readings) {
  using shared::Tag;
  shared::PacketWriter out(shared::kReadingsPacket);
  const auto begin = [&out](Tag tag, HostTime at, model::SensorId sensor) {
    out.begin(at);
    out.put(static_cast<std::uint64_t>(tag));
    out.put(std::uint64_t{static_cast<std::uint32_t>(sensor)});
  };
  for (const auto& r : readings.counters) {
    begin(Tag::kCounter, r.before, r.sensor);
    out.put(static_cast<std::uint64_t>((r.after - r.before).count()));
    out.put(r.total);
  }
  for (const auto& r : readings.powers) {
    begin(Tag::kPower, r.at, r.sensor);
    out.put(r.power.watts());
  }
  for (const auto& r : readings.gauges) {
    begin(Tag::kGauge, r.at, r.sensor);
    out.put(r.value);
  }
  for (const auto& r : readings.failures) {
    begin(Tag::kFailure, r.at, r.sensor);
    out.put(static_cast<std::uint64_t>(r.error.code));
    out.put(std::string_view(r.error.message));
  }
  return std::move(out).packets();
}

std::vector<std::string> encode_uses(const GpuUses& uses) {
  shared::PacketWriter out(shared::kUsesPacket);
  for (const auto& use : uses) {
    out.begin(use.at);
    out.put(static_cast<std::uint64_t>(use.pid));
    out.put(std::uint64_t{static_cast<std::uint32_t>(use.domain)});
    out.put(std::uint64_t{use.compute_utilisation.has_value()});
    if (use.compute_utilisation) out.put(*use.compute_utilisation);
    out.put(std::uint64_t{use.memory_bytes.has_value()});
    if (use.memory_bytes) out.put(*use.memory_bytes);
  }
  return std::move(out).packets();
}

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
              {"gain_low", s.traits.scale.gain_low},
              {"gain_high", s.traits.scale.gain_high},
              {"offset_low", s.traits.scale.offset_low.watts()},
              {"offset_high", s.traits.scale.offset_high.watts()},
              {"scale_source", s.traits.scale.source},
              {"correction", s.traits.correction}};
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
  s.traits.scale = {fields.number("gain_low"), fields.number("gain_high"),
                    Power::watts(fields.number("offset_low")),
                    Power::watts(fields.number("offset_high")), fields.text("scale_source")};
  s.traits.correction = fields.number("correction");
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
