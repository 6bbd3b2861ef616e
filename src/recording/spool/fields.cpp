#include "recording/spool/fields.h"

#include <bit>
#include <cmath>
#include <limits>

namespace jouleprof::spool {
namespace {

constexpr std::int64_t kFarthestTime = std::int64_t{1} << 62;

}  // namespace

void FieldWriter::put(std::uint64_t value) {
  while (value >= 0x80) {
    out_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out_.push_back(static_cast<char>(value));
}

void FieldWriter::put_signed(std::int64_t value) {
  put((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

void FieldWriter::put(std::string_view text) {
  put(std::uint64_t{text.size()});
  out_.append(text);
}

void FieldWriter::put(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) out_.push_back(static_cast<char>(bits >> shift));
}

bool FieldReader::take(std::size_t size, std::string_view& bytes) {
  if (size > rest_.size()) ok_ = false;
  if (!ok_) {
    rest_ = {};
    return false;
  }
  bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

std::uint64_t FieldReader::number(std::uint64_t highest) {
  std::uint64_t value = 0;
  std::string_view byte;
  for (int shift = 0; take(1, byte); shift += 7) {
    const auto bits = static_cast<unsigned char>(byte[0]);
    if (shift == 63 && bits > 1) break;
    value |= std::uint64_t{bits & 0x7FU} << shift;
    if (bits >= 0x80) continue;
    if (value <= highest) return value;
    break;
  }
  ok_ = false;
  return 0;
}

std::int64_t FieldReader::signed_number() {
  const std::uint64_t value = number();
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

std::string FieldReader::text() {
  std::string_view bytes;
  const std::uint64_t size = number();
  return take(size, bytes) ? std::string(bytes) : std::string();
}

double FieldReader::real() {
  std::string_view bytes;
  if (!take(8, bytes)) return 0;
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    bits |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
  }
  return std::bit_cast<double>(bits);
}

HostTime FieldReader::time() {
  const std::int64_t value = signed_number();
  if (value < -kFarthestTime || value > kFarthestTime) ok_ = false;
  return HostTime{Duration{ok_ ? value : 0}};
}

void put(FieldWriter& out, const Header& h) {
  out.put(static_cast<std::uint64_t>(h.pid));
  out.put_signed(h.start.time_since_epoch().count());
  out.put(std::uint64_t{h.segment});
  out.put(static_cast<std::uint64_t>(h.bin.count()));
  out.put(h.program);
}

void get(FieldReader& in, Header& h) {
  h.pid = static_cast<pid_t>(in.number(std::numeric_limits<pid_t>::max()));
  h.start = in.time();
  h.segment = in.index();
  h.bin = Duration{static_cast<std::int64_t>(in.number(kFarthestTime))};
  h.program = in.text();
}

void put(FieldWriter& out, const model::TracedDevice& d) {
  out.put(std::uint64_t{d.ordinal});
  out.put(d.uuid);
  out.put(d.name);
}

void get(FieldReader& in, model::TracedDevice& d) {
  d.ordinal = in.index();
  d.uuid = in.text();
  d.name = in.text();
}

void put(FieldWriter& out, const model::KernelClass& c) {
  out.put(static_cast<std::uint64_t>(c.kind));
  out.put(c.name);
  for (const auto size : c.grid) out.put(std::uint64_t{size});
  for (const auto size : c.block) out.put(std::uint64_t{size});
  out.put(c.bytes);
}

void get(FieldReader& in, model::KernelClass& c) {
  c.kind = static_cast<model::ActivityKind>(
      in.number(static_cast<std::uint64_t>(model::ActivityKind::kGraph)));
  c.name = in.text();
  for (auto& size : c.grid) size = in.index();
  for (auto& size : c.block) size = in.index();
  c.bytes = in.number();
}

void put(FieldWriter& out, const model::Layer& l) {
  out.put(l.name);
  out.put(l.type);
  out.put(std::uint64_t{l.parent});
  out.put(l.shapes);
  out.put(l.parameters);
  out.put(std::uint64_t{l.macs.has_value()});
  if (l.macs) out.put(*l.macs);
  out.put(std::uint64_t{l.compiled});
}

void get(FieldReader& in, model::Layer& l) {
  l.name = in.text();
  l.type = in.text();
  l.parent = in.index();
  l.shapes = in.text();
  l.parameters = in.number();
  l.macs.reset();
  if (in.flag()) l.macs = in.real();
  // A count that is no number is not known.
  if (l.macs && (!std::isfinite(*l.macs) || *l.macs < 0)) l.macs.reset();
  l.compiled = in.flag();
}

void put(FieldWriter& out, const model::Range& r) {
  out.put(r.name);
  out.put(std::uint64_t{r.parent});
}

void get(FieldReader& in, model::Range& r) {
  r.name = in.text();
  r.parent = in.index();
}

void put(FieldWriter& out, const model::Scope& s) {
  out.put(std::uint64_t{s.layer});
  out.put(std::uint64_t{s.range});
  out.put(static_cast<std::uint64_t>(s.phase));
}

void get(FieldReader& in, model::Scope& s) {
  s.layer = in.index();
  s.range = in.index();
  s.phase =
      static_cast<model::Phase>(in.number(static_cast<std::uint64_t>(model::Phase::kOptimizer)));
}

void put(FieldWriter& out, const model::ActivityChunk& c) {
  out.put(static_cast<std::uint64_t>(c.kind));
  out.put(std::uint64_t{c.device});
  out.put_signed(c.begin.time_since_epoch().count());
  out.put_signed(c.end.time_since_epoch().count());
  out.put(c.bytes);
}

void get(FieldReader& in, model::ActivityChunk& c) {
  c.kind = static_cast<model::ChunkKind>(in.number(0xFF));
  c.device = in.index();
  c.begin = in.time();
  c.end = in.time();
  c.bytes = in.text();
}

void put(FieldWriter& out, const model::TraceStatus& s) {
  for (const auto count : {s.activities, s.dropped, s.late, s.graph_launches, s.graph_expanded}) {
    out.put(count);
  }
  out.put(s.problem);
  out.put(std::uint64_t{s.ended});
}

void get(FieldReader& in, model::TraceStatus& s) {
  for (auto* count : {&s.activities, &s.dropped, &s.late, &s.graph_launches, &s.graph_expanded}) {
    *count = in.number();
  }
  s.problem = in.text();
  s.ended = in.flag();
}

}  // namespace jouleprof::spool
