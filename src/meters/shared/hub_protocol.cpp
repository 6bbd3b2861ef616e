#include "meters/shared/hub_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/bytes.h"
#include "model/field_json.h"

namespace jouleprof::meters {
namespace {

using namespace std::chrono_literals;
using model::Either;
using model::Version;

// The first byte of a packet of readings or uses; JSON begins with '{'.
constexpr char kReadingsPacket = 'R';
constexpr char kUsesPacket = 'U';

constexpr std::size_t kFull = kLongestPacket - 1024;  // no record is longer than the rest
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
  return fail(Errc::kCorrupt, "readings that were sent cannot be decoded");
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

// Errors: corrupt.
Result<model::Readings> decode_readings(std::string_view packet) {
  PacketReader in(packet);
  model::Readings out;
  while (in.has_more()) decode_reading(in, out);
  if (!in.good()) return broken();
  return out;
}

// Errors: corrupt.
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

constexpr std::array kProgramTypes{"hello", "read", "names", "devices", "lost", "join", "leave"};
constexpr std::array kHubTypes{"welcome", "domain", "sensor", "ready", "refused", "done", "joined"};

bool is_possible(std::initializer_list<std::optional<Duration>> periods) {
  return std::ranges::all_of(periods,
                             [](const auto& p) { return !p || (*p >= Duration{} && *p <= 1h); });
}
bool is_possible(const Hello& m) {
  const Demand& d = m.demand;
  return is_possible({d.shortest_window, d.poll_period, d.counter_period, d.sample_period,
                      d.state_period, m.process_period});
}
bool is_possible(const Names& m) {
  return m.names.size() <= std::numeric_limits<std::uint32_t>::max() - m.first;
}
bool is_possible(const Welcome& m) { return is_possible({m.fastest}); }
bool is_possible(const model::Sensor& s) {
  const model::SensorTraits& t = s.traits;
  return is_possible({t.refresh, t.window, t.lag, t.rise, t.read_cost});
}
bool is_possible(const auto&) { return true; }

constexpr char kWindowsPacket = 'W';
constexpr std::size_t kWindowsHeader = 16;
static_assert(sizeof(model::WindowRecord) == 24 &&
              std::is_trivially_copyable_v<model::WindowRecord>);
static_assert(kWindowsHeader + kMostWindowsInPacket * sizeof(model::WindowRecord) <=
              kLongestPacket);

template <class T>
T value_at(std::string_view packet, std::size_t place) {
  T value{};
  std::memcpy(&value, packet.data() + place, sizeof value);
  return value;
}

Result<ProgramMessage> decode_windows(std::string_view packet) {
  const auto count = packet.size() < kWindowsHeader ? 0 : value_at<std::uint32_t>(packet, 4);
  if (packet.size() < kWindowsHeader || count > kMostWindowsInPacket ||
      packet.size() != kWindowsHeader + count * sizeof(model::WindowRecord)) {
    return fail(Errc::kCorrupt, "windows that were sent cannot be decoded");
  }
  Windows out{value_at<std::int32_t>(packet, 8), {}, std::vector<model::WindowRecord>(count)};
  if (const auto ring = value_at<std::uint32_t>(packet, 12)) out.ring = ring - 1;
  if (count > 0) {
    std::memcpy(out.windows.data(), packet.data() + kWindowsHeader, packet.size() - kWindowsHeader);
  }
  return out;
}

template <class Message, std::size_t N>
Result<Message> decode(std::string_view packet, const std::array<const char*, N>& types) {
  auto message = model::message_of<Message>(packet, types);
  if (!message || !std::visit([](const auto& m) { return is_possible(m); }, *message)) {
    return fail(Errc::kCorrupt,
                fmt::format("a message of {} bytes has an unknown form", packet.size()));
  }
  return std::move(*message);
}

// The shorter of two periods, of which zero stands for `usual`.
Duration shorter(Duration a, Duration b, Duration usual) {
  const auto value = [usual](Duration d) { return d > Duration{} ? d : usual; };
  return value(a) <= value(b) ? a : b;
}

}  // namespace

std::vector<std::string> encode_readings(const model::Readings& readings) {
  PacketWriter out(kReadingsPacket);
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
  PacketWriter out(kUsesPacket);
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

void fields(Either<Hello> auto& m, auto&& field) {
  field("protocol", Version{m.protocol, kHubProtocol});
  field("readings", m.readings);
  field("shortest", m.demand.shortest_window);
  field("poll", m.demand.poll_period);
  field("counter", m.demand.counter_period);
  field("sample", m.demand.sample_period);
  field("state", m.demand.state_period);
  field("processes", m.process_period);
}
void fields(Either<ReadRequest> auto& m, auto&& field) { field("id", m.id); }
void fields(Either<Names> auto& m, auto&& field) {
  field("first", m.first);
  field("names", m.names);
}
void fields(Either<Devices> auto& m, auto&& field) { field("domains", m.domains); }
void fields(Either<Lost> auto& m, auto&& field) { field("count", m.count); }
void fields(Either<Join> auto& m, auto&& field) { field("visible", m.visible); }
void fields(Either<Leave> auto&, auto&&) {}

void fields(Either<Welcome> auto& m, auto&& field) {
  field("protocol", Version{m.protocol, kHubProtocol});
  field("now", m.now);
  field("fastest", m.fastest);
}
void fields(Either<OfferedDomain> auto& offered, auto&& field) {
  fields(offered.domain, field);
  field("measured", offered.measured);
}
void fields(Either<Ready> auto&, auto&&) {}
void fields(Either<Refused> auto& m, auto&& field) {
  field("protocol", m.protocol);
  field("message", m.message);
}
void fields(Either<ReadDone> auto& m, auto&& field) { field("id", m.id); }
void fields(Either<Joined> auto& m, auto&& field) {
  field("recording", m.recording);
  field("variables", m.variables);
}

std::string encode_windows(pid_t thread, std::optional<std::uint32_t> ring,
                           std::span<const model::WindowRecord> windows) {
  std::string packet(kWindowsHeader + windows.size_bytes(), '\0');
  const auto put = [&packet](std::size_t place, auto value) {
    std::memcpy(packet.data() + place, &value, sizeof value);
  };
  packet[0] = kWindowsPacket;
  put(4, static_cast<std::uint32_t>(windows.size()));
  put(8, static_cast<std::int32_t>(thread));
  put(12, ring ? *ring + 1 : 0);
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

std::string encode(const HubMessage& message) { return model::message_text(message, kHubTypes); }

Result<ProgramMessage> decode_program_message(std::string_view packet) {
  if (packet.starts_with(kWindowsPacket)) return decode_windows(packet);
  return decode<ProgramMessage>(packet, kProgramTypes);
}

Result<HubMessage> decode_hub_message(std::string_view packet) {
  if (packet.starts_with(kReadingsPacket)) return decode_readings(packet);
  if (packet.starts_with(kUsesPacket)) return decode_uses(packet);
  return decode<HubMessage>(packet, kHubTypes);
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
