// Compresses a text at once.
#pragma once

#include <string>
#include <string_view>

namespace jouleprof {

// With gzip's fastest level. Empty: there is no memory for it.
std::string gzip_text(std::string_view text);

}  // namespace jouleprof
