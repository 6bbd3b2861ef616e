// Whether a text is JSON, without reading its values.
#pragma once

#include <string_view>

namespace jouleprof {

// One value, with white space around it. The words NaN, Infinity and -Infinity, which Python
// writes, are taken for numbers; the encoding of strings is not judged.
bool is_json(std::string_view text);

}  // namespace jouleprof
