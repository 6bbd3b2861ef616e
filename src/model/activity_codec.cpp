#include "model/activity_codec.h"

#include <limits>
#include <utility>

namespace jouleprof::model {
namespace {

void put(std::string& bytes, std::uint64_t value) {
  while (value >= 0x80) {
    bytes.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  bytes.push_back(static_cast<char>(value));
}

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// One more, so that none is zero.
std::uint64_t after(std::uint32_t scope) { return scope == kNone ? 0 : std::uint64_t{scope} + 1; }

}  // namespace

void ActivityEncoder::add(const BinEntry& entry) {
  put(bytes_, entry.bin - bin_);
  put(bytes_, entry.kernel_class);
  put(bytes_, entry.busy_nanoseconds);
  put(bytes_, entry.launches);
  bin_ = entry.bin;
}

void ActivityEncoder::add(const ScopeEntry& entry) {
  put(bytes_, entry.kernel_class);
  put(bytes_, after(entry.scope));
  put(bytes_, entry.launches);
  put(bytes_, entry.busy_nanoseconds);
}

void ActivityEncoder::add(const EventEntry& entry) {
  put(bytes_, zigzag(entry.start_nanoseconds - start_));
  put(bytes_, entry.duration_nanoseconds);
  put(bytes_, entry.kernel_class);
  put(bytes_, after(entry.scope));
  put(bytes_, entry.stream);
  start_ = entry.start_nanoseconds;
}

void ActivityEncoder::add(const LayerEntry& entry) {
  put(bytes_, entry.layer);
  put(bytes_, static_cast<std::uint64_t>(entry.phase));
  put(bytes_, entry.calls);
  put(bytes_, entry.wall_nanoseconds);
  put(bytes_, entry.cpu_nanoseconds);
}

void ActivityEncoder::add(const PhaseEntry& entry) {
  put(bytes_, static_cast<std::uint64_t>(entry.phase));
  put(bytes_, entry.times);
  put(bytes_, entry.wall_nanoseconds);
  put(bytes_, entry.cpu_nanoseconds);
}

std::string ActivityEncoder::take() {
  bin_ = 0;
  start_ = 0;
  return std::exchange(bytes_, {});
}

bool ActivityDecoder::number(std::uint64_t& value) {
  value = 0;
  for (int shift = 0; at_ != end_ && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at_++);
    if (shift == 63 && byte > 1) break;
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  ok_ = false;
  at_ = end_;
  return false;
}

bool ActivityDecoder::index(std::uint32_t& value) {
  std::uint64_t wide = 0;
  if (!number(wide)) return false;
  if (wide >= kNone) {
    ok_ = false;
    at_ = end_;
    return false;
  }
  value = static_cast<std::uint32_t>(wide);
  return true;
}

bool ActivityDecoder::phase(Phase& value) {
  std::uint64_t number_of = 0;
  if (!number(number_of)) return false;
  if (number_of > static_cast<std::uint64_t>(Phase::kOptimizer)) {
    at_ = end_;
    return ok_ = false;
  }
  value = static_cast<Phase>(number_of);
  return true;
}

bool ActivityDecoder::scope(std::uint32_t& value) {
  std::uint64_t wide = 0;
  if (!number(wide)) return false;
  if (wide > kNone) {
    ok_ = false;
    at_ = end_;
    return false;
  }
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
  if (at_ == end_) return false;
  return at_ != end_ && index(entry.layer) && phase(entry.phase) && number(entry.calls) &&
         number(entry.wall_nanoseconds) && number(entry.cpu_nanoseconds);
}

bool ActivityDecoder::next(PhaseEntry& entry) {
  return at_ != end_ && phase(entry.phase) && number(entry.times) &&
         number(entry.wall_nanoseconds) && number(entry.cpu_nanoseconds);
}

}  // namespace jouleprof::model
