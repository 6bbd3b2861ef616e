#include "recording/tables/packed.h"

#include <zlib.h>

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace jouleprof::recording {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::uint32_t kNotCompressed = 0xFFFFFFFF;
constexpr std::size_t kMostShrunk = 1032;  // zlib can do no better (zlib's "Technical Details")
constexpr int kLevel = 3;                  // activity gets hardly smaller with more

Bytef* bytes_of(std::string& text) { return reinterpret_cast<Bytef*>(text.data()); }
const Bytef* bytes_of(std::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

}  // namespace

std::string pack(std::string_view bytes) {
  uLongf length = compressBound(bytes.size());
  std::string stream(length, '\0');
  // It fails for want of memory only.
  const bool done =
      bytes.size() < kNotCompressed &&
      compress2(bytes_of(stream), &length, bytes_of(bytes), bytes.size(), kLevel) == Z_OK;
  const bool smaller = done && length < bytes.size();
  std::string out;
  put32(out, smaller ? static_cast<std::uint32_t>(bytes.size()) : kNotCompressed);
  return out += smaller ? std::string_view(stream).substr(0, length) : bytes;
}

std::optional<std::string> unpack(std::string_view packed) {
  if (packed.size() < kLengthBytes) return std::nullopt;
  const std::size_t size = get32(packed);
  packed.remove_prefix(kLengthBytes);
  if (size == kNotCompressed) return std::string(packed);
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
