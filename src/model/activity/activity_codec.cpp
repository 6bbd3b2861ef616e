#include "model/activity/activity_codec.h"

#include <utility>

#include "base/bytes.h"

namespace jouleprof::model {
namespace {

// One more, so that none is zero.
std::uint64_t after(std::uint32_t scope) { return scope == kNone ? 0 : std::uint64_t{scope} + 1; }

}  // namespace

void ActivityEncoder::add(const BinEntry& entry) {
  put_varint(bytes_, entry.bin - bin_);
  put_varint(bytes_, entry.kernel_class);
  put_varint(bytes_, entry.busy_nanoseconds);
  put_varint(bytes_, entry.launches);
  bin_ = entry.bin;
}

void ActivityEncoder::add(const ScopeEntry& entry) {
  put_varint(bytes_, entry.kernel_class);
  put_varint(bytes_, after(entry.scope));
  put_varint(bytes_, entry.launches);
  put_varint(bytes_, entry.busy_nanoseconds);
}

void ActivityEncoder::add(const EventEntry& entry) {
  put_varint(bytes_, zigzag(entry.start_nanoseconds - start_));
  put_varint(bytes_, entry.duration_nanoseconds);
  put_varint(bytes_, entry.kernel_class);
  put_varint(bytes_, after(entry.scope));
  put_varint(bytes_, entry.stream);
  start_ = entry.start_nanoseconds;
}

void ActivityEncoder::add(const LayerEntry& entry) {
  put_varint(bytes_, entry.layer);
  put_varint(bytes_, static_cast<std::uint64_t>(entry.phase));
  put_varint(bytes_, entry.calls);
  put_varint(bytes_, entry.wall_nanoseconds);
  put_varint(bytes_, entry.cpu_nanoseconds);
}

void ActivityEncoder::add(const KernelRerun& entry) {
  put_varint(bytes_, entry.launches);
  put_varint(bytes_, entry.clock_kilohertz);
}

void ActivityEncoder::add(const PhaseEntry& entry) {
  put_varint(bytes_, static_cast<std::uint64_t>(entry.phase));
  put_varint(bytes_, entry.times);
  put_varint(bytes_, entry.wall_nanoseconds);
  put_varint(bytes_, entry.cpu_nanoseconds);
}

std::string ActivityEncoder::take() {
  bin_ = 0;
  start_ = 0;
  return std::exchange(bytes_, {});
}

// Most numbers have one byte.
inline bool ActivityDecoder::number(std::uint64_t& value) {
  if (at_ != end_ && static_cast<unsigned char>(*at_) < 0x80) {
    value = static_cast<unsigned char>(*at_++);
    return true;
  }
  return long_number(value);
}

bool ActivityDecoder::long_number(std::uint64_t& value) {
  if (take_varint(at_, end_, value)) return true;
  return damaged();
}

bool ActivityDecoder::damaged() {
  at_ = end_;
  return ok_ = false;
}

// At most `highest`.
inline bool ActivityDecoder::number(std::uint64_t highest, std::uint64_t& value) {
  return number(value) && (value <= highest || damaged());
}

inline bool ActivityDecoder::index(std::uint32_t& value) {
  std::uint64_t wide = 0;
  if (!number(kNone - 1, wide)) return false;
  value = static_cast<std::uint32_t>(wide);
  return true;
}

bool ActivityDecoder::phase(Phase& value) {
  std::uint64_t wide = 0;
  if (!number(static_cast<std::uint64_t>(Phase::kOptimizer), wide)) return false;
  value = static_cast<Phase>(wide);
  return true;
}

bool ActivityDecoder::scope(std::uint32_t& value) {
  std::uint64_t wide = 0;
  if (!number(kNone, wide)) return false;
  value = wide == 0 ? kNone : static_cast<std::uint32_t>(wide - 1);
  return true;
}

bool ActivityDecoder::next(BinEntry& entry) {
  if (at_ == end_) return false;
  std::uint32_t step = 0;
  if (!index(step) || !index(entry.kernel_class) || !number(entry.busy_nanoseconds) ||
      !number(entry.launches)) {
    return false;
  }
  if (step >= kNone - bin_) return ok_ = false;
  bin_ += step;
  entry.bin = bin_;
  return true;
}

bool ActivityDecoder::next(ScopeEntry& entry) {
  return at_ != end_ && index(entry.kernel_class) && scope(entry.scope) && number(entry.launches) &&
         number(entry.busy_nanoseconds);
}

bool ActivityDecoder::next(EventEntry& entry) {
  if (at_ == end_) return false;
  std::uint64_t step = 0;
  if (!number(step) || !number(entry.duration_nanoseconds) || !index(entry.kernel_class) ||
      !scope(entry.scope) || !index(entry.stream)) {
    return false;
  }
  if (__builtin_add_overflow(start_, unzigzag(step), &start_)) return ok_ = false;
  entry.start_nanoseconds = start_;
  return true;
}

bool ActivityDecoder::next(LayerEntry& entry) {
  std::uint64_t layer = 0;
  if (at_ == end_ || !number(kNone, layer)) return false;
  entry.layer = static_cast<std::uint32_t>(layer);
  return phase(entry.phase) && number(entry.calls) && number(entry.wall_nanoseconds) &&
         number(entry.cpu_nanoseconds);
}

bool ActivityDecoder::next(KernelRerun& entry) {
  return at_ != end_ && number(entry.launches) && number(entry.clock_kilohertz);
}

bool ActivityDecoder::next(PhaseEntry& entry) {
  return at_ != end_ && phase(entry.phase) && number(entry.times) &&
         number(entry.wall_nanoseconds) && number(entry.cpu_nanoseconds);
}

}  // namespace jouleprof::model
