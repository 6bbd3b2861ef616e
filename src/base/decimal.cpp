#include "base/decimal.h"

#include <algorithm>
#include <limits>

namespace jouleprof {
namespace {

bool add_digit(std::int64_t& value, int digit) {
  return !__builtin_mul_overflow(value, 10, &value) &&
         !__builtin_add_overflow(value, digit, &value);
}

}  // namespace

std::optional<std::int64_t> scaled_integer(std::string_view text, int decimals) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  std::string_view fraction;
  if (point != std::string_view::npos) fraction = text.substr(point + 1);
  if (whole.empty() && fraction.empty()) return std::nullopt;
  std::int64_t value = 0;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (const char c : whole) {
    if (!is_digit(c) || !add_digit(value, c - '0')) return std::nullopt;
  }
  for (int i = 0; i < decimals; ++i) {
    const auto place = static_cast<std::size_t>(i);
    const char c = place < fraction.size() ? fraction[place] : '0';
    if (!is_digit(c) || !add_digit(value, c - '0')) return std::nullopt;
  }
  const auto kept = static_cast<std::size_t>(decimals);
  if (fraction.size() > kept) {
    const std::string_view rest = fraction.substr(kept);
    if (!std::all_of(rest.begin(), rest.end(), is_digit)) return std::nullopt;
    if (rest.front() >= '5' && value == std::numeric_limits<std::int64_t>::max()) {
      return std::nullopt;
    }
    if (rest.front() >= '5') ++value;
  }
  return negative ? -value : value;
}

}  // namespace jouleprof
