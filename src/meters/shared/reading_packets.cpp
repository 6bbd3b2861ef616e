#include "meters/shared/reading_packets.h"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/varint.h"

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

}  // namespace jouleprof::meters
