#include "meters/nvml/api/nvml_value.h"

#include <fmt/format.h>

#include <cmath>

namespace jouleprof::meters::nvml {
namespace {

template <typename T>
std::optional<double> unless_sentinel(T value) {
  if (is_sentinel(value)) return std::nullopt;
  return static_cast<double>(value);
}

}  // namespace

std::optional<double> number(abi::ValueType type, const abi::Value& value) {
  switch (type) {
    case abi::ValueType::kDouble:
      return std::isfinite(value.d) ? std::optional(value.d) : std::nullopt;
    case abi::ValueType::kUnsignedInt:
      return unless_sentinel(value.ui);
    case abi::ValueType::kUnsignedLong:
      return unless_sentinel(value.ul);
    case abi::ValueType::kUnsignedLongLong:
      return unless_sentinel(value.ull);
    case abi::ValueType::kSignedLongLong:
      if (is_sentinel(static_cast<unsigned long long>(value.sll))) return std::nullopt;
      return static_cast<double>(value.sll);
    case abi::ValueType::kSignedInt:
      return static_cast<double>(value.i);
    case abi::ValueType::kUnsignedShort:
      return static_cast<double>(value.us);
  }
  return std::nullopt;
}

Result<Power> power_from(std::string_view what, std::optional<double> milliwatts) {
  constexpr double kMostMilliwatts = 100e6;
  if (!milliwatts) {
    return fail(Errc::kUnavailable, fmt::format("{}: the driver returned its no-value mark", what));
  }
  if (*milliwatts < 0 || *milliwatts > kMostMilliwatts) {
    return fail(Errc::kCorrupt, fmt::format("{}: an impossible power", what));
  }
  return Power::watts(*milliwatts * 1e-3);
}

}  // namespace jouleprof::meters::nvml
