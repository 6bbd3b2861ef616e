#include "recording/packed.h"

#include <zlib.h>

#include <cstddef>
#include <cstdint>

namespace jouleprof::recording {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kAsTheyAre = 0xFFFFFFFF;
constexpr std::size_t kMostShrunk = 1032;  // zlib can do no better (zlib's "Technical Details")
constexpr int kLevel = 3;                  // activity gets hardly smaller with more

Bytef* bytes_of(std::string& text) { return reinterpret_cast<Bytef*>(text.data()); }
const Bytef* bytes_of(std::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

void put_length(std::string& out, std::size_t length) {
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    out[i] = static_cast<char>(static_cast<std::uint8_t>(length >> (8 * i)));
  }
}

}  // namespace

std::string pack(std::string_view bytes) {
  uLongf length = compressBound(bytes.size());
  std::string out(kLengthBytes + length, '\0');
  // It fails for want of memory only.
  const bool done =
      bytes.size() < kAsTheyAre && compress2(bytes_of(out) + kLengthBytes, &length, bytes_of(bytes),
                                             bytes.size(), kLevel) == Z_OK;
  if (done && length < bytes.size()) {
    put_length(out, bytes.size());
    out.resize(kLengthBytes + length);
    return out;
  }
  put_length(out, kAsTheyAre);
  out.replace(kLengthBytes, out.npos, bytes);
  return out;
}

std::optional<std::string> unpack(std::string_view packed) {
  if (packed.size() < kLengthBytes) return std::nullopt;
  std::size_t size = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    size |= std::size_t{static_cast<std::uint8_t>(packed[i])} << (8 * i);
  }
  packed.remove_prefix(kLengthBytes);
  if (size == kAsTheyAre) return std::string(packed);
  if (size > kMostShrunk * packed.size()) return std::nullopt;
  std::string out(size, '\0');
  uLongf length = size;
  Bytef nothing = 0;
  const int done =
      uncompress(size != 0 ? bytes_of(out) : &nothing, &length, bytes_of(packed), packed.size());
  if (done != Z_OK || length != size) return std::nullopt;
  return out;
}

}  // namespace jouleprof::recording
