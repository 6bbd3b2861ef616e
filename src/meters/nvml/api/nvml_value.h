// Converts NVML's typed values; some mark a missing value.
#pragma once

#include <optional>
#include <string_view>

#include "abi/nvml_abi.h"
#include "base/result.h"
#include "jouleprof/units.h"

namespace jouleprof::meters::nvml {

// The driver's marks for "no value": all bits set in 32 or 64 bits, and the former times 1000.
constexpr bool is_sentinel(unsigned long long value) {
  return value == 0xFFFFFFFFULL || value == ~0ULL || value == 4294967295000ULL;
}

// The number in a tagged value; absent for a type not known here and for sentinels.
std::optional<double> number(abi::ValueType type, const abi::Value& value);

// A power given in milliwatts. Errors: unavailable for a sentinel, corrupt for a negative value or
// an impossible one (100 kW); `what` names the source.
Result<Power> power_from(std::string_view what, std::optional<double> milliwatts);

}  // namespace jouleprof::meters::nvml
