// Numbers as bytes: four, the least first; or unsigned LEB128, seven bits a byte, the least first.
// Signed ones are zigzag-encoded before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace jouleprof {

inline void put32(std::string& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

// The number in the first four of `bytes`.
inline std::uint32_t get32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
  }
  return value;
}

inline void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

// Takes the number at `at` and moves behind it. False where the bytes end within it or hold more
// than 64 bits; `at` is then undefined, but not beyond `end`.
inline bool take_varint(const char*& at, const char* end, std::uint64_t& value) {
  value = 0;
  for (int shift = 0; at != end && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    if (shift == 63 && byte > 1) return false;
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

inline std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

inline std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

}  // namespace jouleprof
