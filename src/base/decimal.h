// Decimal numbers as exact integers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace jouleprof {

// A decimal number ("-12.5") times 10^decimals, rounded to a whole one; nothing for any other text
// and for what does not fit. Exact: no floating point.
std::optional<std::int64_t> scaled_integer(std::string_view text, int decimals);

}  // namespace jouleprof
