// Numbers as four bytes, the least first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace jouleprof {

inline void put32(std::string& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

// Of the first four of `bytes`.
inline std::uint32_t get32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
  }
  return value;
}

}  // namespace jouleprof
