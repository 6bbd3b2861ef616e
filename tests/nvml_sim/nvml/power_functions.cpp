// Power, energy and power limits.
#include <cmath>

#include "nvml_sim/nvml/dispatch.h"

namespace jouleprof::nvml_sim {
namespace {

using abi::ValueType;

constexpr const char* kEnergyFunction = "nvmlDeviceGetTotalEnergyConsumption";

// One field: an error, or a value and when it was renewed.
struct FieldAnswer {
  Return result = Return::kNotSupported;
  ValueType type = ValueType::kUnsignedInt;
  unsigned long long value = 0;
  double renewed = 0;
};

FieldAnswer power_field(const DeviceCall& c, const abi::FieldValue& field) {
  constexpr Scope kScopes[]{Scope::kGpu, Scope::kModule, Scope::kMemory};
  if (field.scope_id >= std::size(kScopes)) return {Return::kInvalidArgument};
  const Scope scope = kScopes[field.scope_id];
  const bool is_average = field.field_id == abi::kFieldPowerAverage;
  if (!c.device.has_scope(scope) || (scope == Scope::kMemory && !is_average)) return {};
  const auto value = is_average ? c.device.average(scope, c.now) : c.device.instant(scope, c.now);
  if (!value) return {};
  return {Return::kSuccess, ValueType::kUnsignedInt, milliwatts(value->watts), value->renewed};
}

// Costs and faults are those of the function that reads the same counter.
FieldAnswer energy_field(const DeviceCall& c) {
  const auto failed = c.simulator().faults().failure(kEnergyFunction, c.device.index(), c.now);
  if (failed) return {*failed};
  spend(c.session, kEnergyFunction);
  const double now = c.simulator().now();
  const auto mj = c.device.counter_mj(now);
  if (!mj) return {};
  return {Return::kSuccess, ValueType::kUnsignedLongLong, *mj, now};
}

FieldAnswer answer(const DeviceCall& c, const abi::FieldValue& field) {
  switch (field.field_id) {
    case abi::kFieldPowerAverage:
    case abi::kFieldPowerInstant:
      return power_field(c, field);
    case abi::kFieldTotalEnergyConsumption:
      return energy_field(c);
    case abi::kFieldMemoryTemperature:
      if (!c.device.has_scope(Scope::kMemory)) return {};
      return {Return::kSuccess, ValueType::kUnsignedInt,
              static_cast<unsigned>(std::max(0.0, c.device.temperature_celsius(c.now) + 6)), c.now};
    default:
      return {};
  }
}

void fill_field(const DeviceCall& c, abi::FieldValue& field) {
  const FieldAnswer a = answer(c, field);
  const bool success = a.result == Return::kSuccess;
  field.nvml_return = a.result;
  field.value_type = a.type;
  field.timestamp = c.simulator().to_real_us(success ? a.renewed : c.now);
  field.latency_usec = 0;
  field.value.ull = 0;
  if (success && a.type == ValueType::kUnsignedLongLong) {
    field.value.ull = a.value;
  } else if (success) {
    field.value.ui = static_cast<unsigned>(a.value);
  }
}

Return set_limit(const DeviceCall& c, unsigned mw) {
  const auto& limit = c.spec.limit;
  if (!c.device.accepts_settings()) return Return::kNoPermission;
  const double watts = mw * 1e-3;
  if (watts < limit.minimum_watts || watts > limit.maximum_watts) return Return::kInvalidArgument;
  double made = std::max(watts, limit.clamp_watts);
  if (limit.step_watts > 0) made = std::floor(made / limit.step_watts) * limit.step_watts;
  const auto set = c.simulator().set_limit(c.device.index(), made);
  return set ? Return::kSuccess : Return::kUnknown;
}

// Where nvmlDeviceGetSamples stores what is later than `last_seen`.
struct SampleRequest {
  unsigned long long last_seen;
  unsigned* count;
  abi::Sample* samples;  // null: only the capacity
};

Return power_samples(const DeviceCall& c, Scope scope, const SampleRequest& request) {
  if (request.samples == nullptr) return give(request.count, unsigned{kRingCapacity});
  std::vector<abi::Sample> later;
  for (const auto& [stamp, watts] : c.device.ring(scope, c.now)) {
    abi::Sample sample{};
    sample.timestamp = static_cast<unsigned long long>(c.simulator().to_real_us(stamp));
    sample.value.ui = milliwatts(watts);
    if (sample.timestamp > request.last_seen) later.push_back(sample);
  }
  if (later.empty()) return Return::kNotFound;
  const std::size_t given = std::min<std::size_t>(*request.count, later.size());
  std::copy_n(later.begin(), given, request.samples);
  return give(request.count, static_cast<unsigned>(given));
}

}  // namespace

NVML_VALUE(with_gpu, DeviceGetPowerUsage, unsigned,
           milliwatts(c.device.average(c.device.own_scope(), c.now)
                          .value_or(c.device.instant(c.device.own_scope(), c.now))
                          .watts))
NVML_VALUE(with_gpu, DeviceGetTotalEnergyConsumption, unsigned long long,
           c.device.counter_mj(c.now))

NVML_FUNCTION(DeviceGetFieldValues, Device device, int count, abi::FieldValue* values) {
  return with_gpu(__func__, device, [&](const DeviceCall& c) {
    if (values == nullptr || count < 0) return Return::kInvalidArgument;
    for (int i = 0; i < count; ++i) fill_field(c, values[i]);
    return Return::kSuccess;
  });
}

NVML_FUNCTION(DeviceGetSamples, Device device, abi::SamplingType type, unsigned long long last_seen,
              ValueType* value_type, unsigned* count, abi::Sample* samples) {
  return with_gpu(__func__, device, [&](const DeviceCall& c) {
    if (count == nullptr || value_type == nullptr) return Return::kInvalidArgument;
    *value_type = ValueType::kUnsignedInt;
    const SampleRequest request{last_seen, count, samples};
    if (type == abi::SamplingType::kTotalPower) {
      return power_samples(c, c.device.own_scope(), request);
    }
    if (type == abi::SamplingType::kModulePower && c.device.has_scope(Scope::kModule)) {
      return power_samples(c, Scope::kModule, request);
    }
    return Return::kNotSupported;
  });
}

NVML_VALUE(with_gpu, DeviceGetPowerManagementLimit, unsigned,
           milliwatts(c.device.requested_limit()))
NVML_VALUE(with_gpu, DeviceGetEnforcedPowerLimit, unsigned, milliwatts(c.device.limit(c.now)))
NVML_VALUE(with_gpu, DeviceGetPowerManagementDefaultLimit, unsigned,
           milliwatts(c.spec.limit.default_watts))
NVML_PAIR(DeviceGetPowerManagementLimitConstraints, unsigned,
          std::pair(milliwatts(c.spec.limit.minimum_watts), milliwatts(c.spec.limit.maximum_watts)))

NVML_FUNCTION(DeviceSetPowerManagementLimit, Device device, unsigned mw) {
  return with_gpu(__func__, device, [&](const DeviceCall& c) { return set_limit(c, mw); });
}
}  // namespace jouleprof::nvml_sim
