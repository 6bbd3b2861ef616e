#include "meters/nvml/power_scopes.h"

#include "meters/nvml/api/nvml_error.h"

namespace jouleprof::meters::nvml {
namespace {

constexpr Field kInstant{abi::kFieldPowerInstant, abi::kScopeGpu};
constexpr Field kAverage{abi::kFieldPowerAverage, abi::kScopeGpu};
constexpr Field kModuleInstant{abi::kFieldPowerInstant, abi::kScopeModule};
constexpr Field kModuleAverage{abi::kFieldPowerAverage, abi::kScopeModule};
constexpr Field kMemoryInstant{abi::kFieldPowerInstant, abi::kScopeMemory};
constexpr Field kMemoryAverage{abi::kFieldPowerAverage, abi::kScopeMemory};

// The value of a usable answer.
std::optional<double> power(const FieldAnswer& answer) {
  if (answer.code != abi::Return::kSuccess || !answer.value || *answer.value <= 0) {
    return std::nullopt;
  }
  return answer.value;
}

}  // namespace

PowerScopes find_powers(const NvmlApi& api, abi::Device device, const Generation& generation) {
  const auto answers = read_fields(api, device,
                                   {kInstant,
                                    kAverage,
                                    kModuleInstant,
                                    kModuleAverage,
                                    kMemoryInstant,
                                    kMemoryAverage,
                                    {kPowerUsageCall}});
  const auto instant = power(answers[0]);
  const auto average = power(answers[1]);
  // Is `part` really less than `whole`? True where nothing is known of one of them.
  const auto is_part = [](std::optional<double> part, std::optional<double> whole) {
    return !part || !whole || *part < *whole;
  };
  PowerScopes found;
  if (instant) found.gpu.instant = kInstant;
  if (average) found.gpu.average = kAverage;
  if (const auto p = power(answers[2]); p && is_part(instant, p)) {
    found.module.instant = kModuleInstant;
  }
  if (const auto p = power(answers[3]); p && is_part(average, p)) {
    found.module.average = kModuleAverage;
  }
  if (const auto p = power(answers[4]); p && is_part(p, instant)) {
    found.memory.instant = kMemoryInstant;
  }
  if (const auto p = power(answers[5]); p && is_part(p, average)) {
    found.memory.average = kMemoryAverage;
  }
  // On a superchip the old call may mean either scope, so there it is not used.
  if (power(answers[6]) && !found.module.any()) {
    const bool is_instant = power_usage_is_instant(generation);
    if (is_instant && !instant) found.gpu.instant = Field{kPowerUsageCall};
    if (!is_instant && !average) found.gpu.average = Field{kPowerUsageCall};
  }
  if (!found.gpu.instant) {
    found.instant_code =
        answers[0].code == abi::Return::kSuccess ? abi::Return::kNoData : answers[0].code;
  }
  return found;
}

}  // namespace jouleprof::meters::nvml
