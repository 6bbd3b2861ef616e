#include "recording/spool/frame.h"

#include <zlib.h>

#include <bit>

#include "base/bytes.h"

namespace jouleprof::spool {
namespace {

std::uint32_t checksum(std::string_view bytes) noexcept {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

}  // namespace

void put_frame(std::string& out, FrameType type, std::string_view payload) {
  const std::size_t begin = out.size();
  out.push_back(static_cast<char>(type));
  put32(out, static_cast<std::uint32_t>(payload.size()));
  out.append(payload);
  put32(out, checksum(std::string_view(out).substr(begin)));
}

Frame first_frame(std::string_view bytes) noexcept {
  Frame frame;
  frame.size = kFrameHead + kFrameTail;
  if (bytes.size() < kFrameHead) return frame;
  const std::size_t length = get32(bytes.substr(1));
  if (length > kLargestPayload) {
    frame.state = Frame::State::kDamaged;
    return frame;
  }
  frame.size += length;
  if (bytes.size() < frame.size) return frame;
  frame.type = static_cast<std::uint8_t>(bytes[0]);
  frame.payload = bytes.substr(kFrameHead, length);
  const bool sound =
      get32(bytes.substr(kFrameHead + length)) == checksum(bytes.substr(0, kFrameHead + length));
  frame.state = sound ? Frame::State::kWhole : Frame::State::kDamaged;
  return frame;
}

// IEEE 754, the least byte first.
void FieldWriter::put(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) out_.push_back(static_cast<char>(bits >> shift));
}

bool FieldReader::take(std::size_t size, std::string_view& bytes) {
  if (size > static_cast<std::size_t>(end_ - at_)) ok_ = false;
  if (!ok_) {
    at_ = end_;
    return false;
  }
  bytes = {at_, size};
  at_ += size;
  return true;
}

std::uint64_t FieldReader::number(std::uint64_t highest) {
  std::uint64_t value = 0;
  if (ok_ && take_varint(at_, end_, value) && value <= highest) return value;
  ok_ = false;
  at_ = end_;
  return 0;
}

void FieldReader::get(HostTime& value) {
  const std::int64_t count = unzigzag(number(2 * kFarthest));
  value = HostTime{Duration{count}};
}

void FieldReader::get(double& value) {
  std::string_view bytes;
  std::uint64_t bits = 0;
  if (take(8, bytes)) {
    for (std::size_t i = 0; i < 8; ++i) {
      bits |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
    }
  }
  value = std::bit_cast<double>(bits);
}

void FieldReader::get(std::string& text) {
  std::string_view bytes;
  const std::uint64_t size = number(~std::uint64_t{0});
  text = take(size, bytes) ? bytes : std::string_view();
}

void FieldReader::get(std::optional<double>& value) {
  value.reset();
  if (number(1) != 0) get(value.emplace());
  if (value && (!std::isfinite(*value) || *value < 0)) value.reset();
}

}  // namespace jouleprof::spool
