#include "recording/spool/frame.h"

#include <zlib.h>

#include "base/little_endian.h"

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

}  // namespace jouleprof::spool
