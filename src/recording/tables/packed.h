// Bytes compressed with zlib, as the recording keeps long ones.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace jouleprof::recording {

// The length of `bytes` in four bytes, the least first, then a zlib stream of them; or 0xFFFFFFFF
// and then the bytes, where that is not longer.
std::string pack(std::string_view bytes);

// What was packed; none if it is damaged. Takes no more memory than zlib could have packed.
std::optional<std::string> unpack(std::string_view packed);

}  // namespace jouleprof::recording
