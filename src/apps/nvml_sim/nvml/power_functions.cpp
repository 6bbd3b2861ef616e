// Power, energy and power limits.
#include <cmath>

#include "apps/nvml_sim/nvml/dispatch.h"

namespace sim = jouleprof::nvml_sim;
namespace abi = jouleprof::abi;
using abi::Device;
using abi::Return;
using abi::ValueType;

namespace {

// An answer of one field: a return code, or a value and when it was renewed.
struct FieldAnswer {
  Return result = Return::kNotSupported;
  ValueType type = ValueType::kUnsignedInt;
  unsigned long long value = 0;
  double renewed = 0;
};

FieldAnswer power_field(const sim::DeviceCall& c, const abi::FieldValue& asked) {
  constexpr std::array<sim::Scope, 3> kScopes{sim::Scope::kGpu, sim::Scope::kModule,
                                              sim::Scope::kMemory};
  if (asked.scope_id >= kScopes.size()) return {Return::kInvalidArgument};
  const sim::Scope scope = kScopes[asked.scope_id];
  if (!c.device.has_scope(scope)) return {};
  const bool is_average = asked.field_id == abi::kFieldPowerAverage;
  if (scope == sim::Scope::kMemory && !is_average) return {};
  const auto value = is_average ? c.device.average(scope, c.now) : c.device.instant(scope, c.now);
  if (!value) return {};
  return {Return::kSuccess, ValueType::kUnsignedInt, sim::milliwatts(value->watts), value->renewed};
}

FieldAnswer energy_field(const sim::DeviceCall& c) {
  // The driver asks the board for it, whichever function the client came through.
  sim::spend(c.session, "nvmlDeviceGetTotalEnergyConsumption");
  const double now = c.simulator().now();
  const auto mj = c.device.counter_mj(now);
  if (!mj) return {};
  return {Return::kSuccess, ValueType::kUnsignedLongLong, *mj, now};
}

FieldAnswer answer(const sim::DeviceCall& c, const abi::FieldValue& asked) {
  const auto watts = [&](double value) {
    return FieldAnswer{Return::kSuccess, ValueType::kUnsignedInt, sim::milliwatts(value), c.now};
  };
  const auto& limit = c.device.spec().limit;
  switch (asked.field_id) {
    case abi::kFieldPowerAverage:
    case abi::kFieldPowerInstant:
      return power_field(c, asked);
    case abi::kFieldTotalEnergyConsumption:
    case abi::kFieldEnergy:
      return energy_field(c);
    case abi::kFieldPowerMinLimit:
      return watts(limit.minimum_watts);
    case abi::kFieldPowerMaxLimit:
      return watts(limit.maximum_watts);
    case abi::kFieldPowerDefaultLimit:
      return watts(limit.default_watts);
    case abi::kFieldPowerCurrentLimit:
    case abi::kFieldPowerRequestedLimit:
      return watts(c.device.limit(c.now));
    case abi::kFieldMemoryTemperature:
      if (!c.device.has_scope(sim::Scope::kMemory)) return {};
      return {
          Return::kSuccess, ValueType::kUnsignedInt,
          static_cast<unsigned long long>(std::max(0.0, c.device.temperature_celsius(c.now) + 6)),
          c.now};
    default:
      return {};
  }
}

// NVML_VALUE: the same faults befall a field as its function.
const char* function_of(unsigned field) {
  switch (field) {
    case abi::kFieldTotalEnergyConsumption:
    case abi::kFieldEnergy:
      return "nvmlDeviceGetTotalEnergyConsumption";
    default:
      return nullptr;
  }
}

void fill_field(const sim::DeviceCall& c, abi::FieldValue& field) {
  const char* function = function_of(field.field_id);
  const auto& faults = c.simulator().faults();
  const auto failed =
      function != nullptr ? faults.failure(function, c.device.index(), c.now) : std::nullopt;
  const FieldAnswer a = failed ? FieldAnswer{*failed} : answer(c, field);
  field.nvml_return = a.result;
  field.value_type = a.type;
  field.timestamp = c.simulator().to_real_us(a.result == Return::kSuccess ? a.renewed : c.now);
  field.latency_usec = 0;
  field.value.ull = 0;
  if (a.result != Return::kSuccess) return;
  auto value = c.shown(a.value);
  if (function != nullptr) {
    value = faults.sentinel(function, c.device.index(), c.now).value_or(value);
  }
  if (a.type == ValueType::kUnsignedLongLong) {
    field.value.ull = value;
  } else {
    field.value.ui = static_cast<unsigned>(value);
  }
}

Return set_limit(const sim::DeviceCall& c, unsigned mw) {
  const auto& limit = c.device.spec().limit;
  if (!limit.settable) return Return::kNoPermission;
  const double watts = mw * 1e-3;
  if (watts < limit.minimum_watts || watts > limit.maximum_watts) return Return::kInvalidArgument;
  const auto set = c.session.simulator->set_limit(c.device.index(), watts);
  return set ? Return::kSuccess : Return::kUnknown;
}

// Samples later than `last_seen`, in NVML's way.
Return give_samples(const std::vector<abi::Sample>& later, std::size_t capacity, unsigned* count,
                    abi::Sample* samples) {
  if (samples == nullptr) return sim::give(count, static_cast<unsigned>(capacity));
  if (later.empty()) return Return::kNotFound;
  const std::size_t given = std::min<std::size_t>(*count, later.size());
  std::copy_n(later.begin(), given, samples);
  return sim::give(count, static_cast<unsigned>(given));
}

Return power_samples(const sim::DeviceCall& c, sim::Scope scope, unsigned long long last_seen,
                     unsigned* count, abi::Sample* samples) {
  const auto& spec = c.device.spec().sensors.ring;
  if (!spec) return Return::kNotSupported;
  std::vector<abi::Sample> later;
  if (samples != nullptr) {
    const auto ring = c.device.ring(scope, c.now);
    for (const auto& sample : *ring) {
      abi::Sample s{};
      s.timestamp = static_cast<unsigned long long>(c.simulator().to_real_us(sample.stamp));
      s.value.ui = c.shown(sim::milliwatts(sample.watts));
      if (s.timestamp > last_seen) later.push_back(s);
    }
  }
  return give_samples(later, static_cast<std::size_t>(spec->capacity), count, samples);
}

// One sample every sixth of a second, 100 of them.
Return utilisation_samples(const sim::DeviceCall& c, unsigned long long last_seen, unsigned* count,
                           abi::Sample* samples) {
  constexpr int kCapacity = 100;
  constexpr double kRefresh = 1.0 / 6;
  std::vector<abi::Sample> later;
  const double last = std::floor(c.now / kRefresh);
  for (int i = kCapacity - 1; samples != nullptr && i >= 0; --i) {
    const double at = (last - i) * kRefresh;
    abi::Sample s{};
    s.timestamp = static_cast<unsigned long long>(c.simulator().to_real_us(at));
    s.value.ui = sim::percent(c.device.utilisation(at));
    if (s.timestamp > last_seen) later.push_back(s);
  }
  return give_samples(later, kCapacity, count, samples);
}

}  // namespace

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetPowerUsage(Device device, unsigned* mw) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    const auto value = c.device.power_usage(c.now);
    if (!value) return Return::kNotSupported;
    return sim::give(mw, c.shown(sim::milliwatts(value->watts)));
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetTotalEnergyConsumption(Device device,
                                                                 unsigned long long* mj) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    const auto value = c.device.counter_mj(c.now);
    if (!value) return Return::kNotSupported;
    return sim::give(mj, c.shown(static_cast<unsigned long long>(*value)));
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetFieldValues(Device device, int count,
                                                      abi::FieldValue* values) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    if (values == nullptr || count < 0) return Return::kInvalidArgument;
    for (int i = 0; i < count; ++i) fill_field(c, values[i]);
    return Return::kSuccess;
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetSamples(Device device, abi::SamplingType type,
                                                  unsigned long long last_seen,
                                                  ValueType* value_type, unsigned* count,
                                                  abi::Sample* samples) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    if (count == nullptr || value_type == nullptr) return Return::kInvalidArgument;
    *value_type = ValueType::kUnsignedInt;
    switch (type) {
      case abi::SamplingType::kTotalPower:
        return power_samples(c, c.device.own_scope(), last_seen, count, samples);
      case abi::SamplingType::kModulePower:
        if (!c.device.has_scope(sim::Scope::kModule)) return Return::kNotSupported;
        return power_samples(c, sim::Scope::kModule, last_seen, count, samples);
      case abi::SamplingType::kGpuUtilization:
        return utilisation_samples(c, last_seen, count, samples);
      default:
        return Return::kNotSupported;
    }
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetPowerManagementMode(Device device,
                                                              abi::EnableState* mode) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall&) {
    return sim::give(mode, abi::EnableState::kEnabled);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetPowerManagementLimit(Device device, unsigned* mw) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    return sim::give(mw, c.shown(sim::milliwatts(c.device.limit(c.now))));
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* mw) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    return sim::give(mw, c.shown(sim::milliwatts(c.device.limit(c.now))));
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetPowerManagementDefaultLimit(Device device, unsigned* mw) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    return sim::give(mw, c.shown(sim::milliwatts(c.device.spec().limit.default_watts)));
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetPowerManagementLimitConstraints(Device device,
                                                                          unsigned* min_mw,
                                                                          unsigned* max_mw) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    if (max_mw == nullptr) return Return::kInvalidArgument;
    *max_mw = sim::milliwatts(c.device.spec().limit.maximum_watts);
    return sim::give(min_mw, sim::milliwatts(c.device.spec().limit.minimum_watts));
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceSetPowerManagementLimit(Device device, unsigned mw) {
  return sim::with_gpu(__func__, device,
                       [&](const sim::DeviceCall& c) { return set_limit(c, mw); });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceSetPowerManagementLimit_v2(Device device,
                                                                  abi::PowerValue* value) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    if (value == nullptr) return Return::kInvalidArgument;
    if (value->version != abi::kPowerValueVersion) return Return::kArgumentVersionMismatch;
    if (value->power_scope != abi::kScopeGpu) return Return::kNotSupported;
    return set_limit(c, value->power_value_mw);
  });
}

JOULEPROF_NVML_CHECK(DeviceGetPowerUsage);
JOULEPROF_NVML_CHECK(DeviceGetTotalEnergyConsumption);
JOULEPROF_NVML_CHECK(DeviceGetFieldValues);
JOULEPROF_NVML_CHECK(DeviceGetSamples);
JOULEPROF_NVML_CHECK(DeviceGetPowerManagementMode);
JOULEPROF_NVML_CHECK(DeviceGetPowerManagementLimit);
JOULEPROF_NVML_CHECK(DeviceGetEnforcedPowerLimit);
JOULEPROF_NVML_CHECK(DeviceGetPowerManagementDefaultLimit);
JOULEPROF_NVML_CHECK(DeviceGetPowerManagementLimitConstraints);
JOULEPROF_NVML_CHECK(DeviceSetPowerManagementLimit);
JOULEPROF_NVML_CHECK(DeviceSetPowerManagementLimit_v2);
