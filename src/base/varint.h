// Numbers as unsigned LEB128: seven bits a byte, the least first. Signed ones are zigzag-encoded
// before.
#pragma once

#include <cstdint>
#include <string>

namespace jouleprof {

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
