#include "recording/spool/frame.h"

#include <array>

#include "base/little_endian.h"

namespace jouleprof::spool {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xEDB88320 : 0);
    table[i] = value;
  }
  return table;
}

constexpr auto kTable = make_table();

}  // namespace

std::uint32_t crc32(std::string_view bytes) noexcept {
  std::uint32_t value = 0xFFFFFFFF;
  for (const char c : bytes) {
    value = value >> 8 ^ kTable[(value ^ static_cast<unsigned char>(c)) & 0xFF];
  }
  return ~value;
}

void put_frame(std::string& out, FrameType type, std::string_view payload) {
  const std::size_t begin = out.size();
  out.push_back(static_cast<char>(type));
  put32(out, static_cast<std::uint32_t>(payload.size()));
  out.append(payload);
  put32(out, crc32(std::string_view(out).substr(begin)));
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
      get32(bytes.substr(kFrameHead + length)) == crc32(bytes.substr(0, kFrameHead + length));
  frame.state = sound ? Frame::State::kWhole : Frame::State::kDamaged;
  return frame;
}

}  // namespace jouleprof::spool
