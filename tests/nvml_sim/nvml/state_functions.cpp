// Memory, utilisation, temperature, clocks.
#include <cmath>

#include "nvml_sim/nvml/dispatch.h"

namespace jouleprof::nvml_sim {
namespace {

// The processes' memory counts on the GPU, not on its MIG devices.
abi::Memory memory_of(const DeviceCall& c) {
  abi::Memory memory{};
  if (c.handle.mig != nullptr) {
    memory.total = c.handle.mig->memory_bytes;
    memory.used = std::min<unsigned long long>(memory.total, 16U << 20U);
  } else {
    unsigned long long used = 512ULL << 20U;
    for (const auto& process : c.device.processes(c.now)) used += process.memory_bytes;
    memory.total = c.spec.memory_total_bytes;
    memory.used = std::min(memory.total, used);
  }
  memory.free = memory.total - memory.used;
  return memory;
}

// Absent for a GPU with MIG devices, as the driver does not report it there.
std::optional<abi::Utilization> utilisation_of(const DeviceCall& c) {
  if (!c.spec.mig.empty()) return std::nullopt;
  const unsigned gpu = percent(c.device.utilisation(c.now));
  return abi::Utilization{gpu, gpu / 2};
}

// Percent and period in microseconds of an engine that no scenario uses.
std::optional<std::pair<unsigned, unsigned>> idle_engine(const DeviceCall& c) {
  if (!c.spec.mig.empty()) return std::nullopt;
  return std::pair(0U, 166'666U);
}

unsigned celsius(const DeviceCall& c) {
  const double rounded = std::round(std::max(0.0, c.device.temperature_celsius(c.now)));
  return static_cast<unsigned>(rounded);
}

unsigned long long clock_reasons(const DeviceCall& c) {
  if (c.device.at_rest(c.now)) return abi::kReasonGpuIdle;
  return (c.device.at_limit(c.now) ? abi::kReasonSwPowerCap : 0) |
         (c.device.is_hot(c.now) ? abi::kReasonSwThermalSlowdown : 0);
}

// `lock`: of the SMs or of the memory. Nothing: no clock is locked.
Return lock_clock(const char* call, Device device, std::optional<unsigned> mhz,
                  Result<void> (Simulator::*lock)(unsigned, std::optional<double>)) {
  return with_gpu(call, device, [&](const DeviceCall& c) {
    if (!c.device.accepts_settings()) return Return::kNoPermission;
    const unsigned step = c.spec.clocks.lock_step_mhz;
    const auto locked = (c.simulator().*lock)(
        c.device.index(), mhz ? std::optional<double>(*mhz / step * step) : std::nullopt);
    return locked ? Return::kSuccess : Return::kUnknown;
  });
}

std::vector<unsigned> memory_clocks(const DeviceCall& c) {
  return {c.spec.clocks.memory_mhz, c.spec.clocks.memory_mhz / 2};
}

}  // namespace

NVML_VALUE(with_device, DeviceGetMemoryInfo, abi::Memory, memory_of(c))
NVML_FUNCTION(DeviceGetMemoryInfo_v2, Device device, abi::MemoryV2* memory) {
  return with_device(__func__, device, [&](const DeviceCall& c) {
    if (memory == nullptr) return Return::kInvalidArgument;
    if (memory->version != abi::kMemoryV2Version) return Return::kArgumentVersionMismatch;
    const abi::Memory v1 = memory_of(c);
    *memory = {memory->version, v1.total, 0, v1.free, v1.used};
    return Return::kSuccess;
  });
}

NVML_VALUE(with_gpu, DeviceGetUtilizationRates, abi::Utilization, utilisation_of(c))
NVML_VALUE(with_gpu, DeviceGetFanSpeed, unsigned, std::nullopt)
NVML_PAIR(DeviceGetEncoderUtilization, unsigned, idle_engine(c))
NVML_PAIR(DeviceGetDecoderUtilization, unsigned, idle_engine(c))
NVML_PAIR(DeviceGetJpgUtilization, unsigned, idle_engine(c))
NVML_PAIR(DeviceGetOfaUtilization, unsigned, idle_engine(c))

NVML_FUNCTION(DeviceGetTemperature, Device device, abi::TemperatureSensor sensor, unsigned* out) {
  return with_gpu(__func__, device, [&](const DeviceCall& c) {
    if (sensor != abi::TemperatureSensor::kGpu) return Return::kInvalidArgument;
    return give(out, celsius(c));
  });
}

NVML_FUNCTION(DeviceGetTemperatureV, Device device, abi::Temperature* temperature) {
  return with_gpu(__func__, device, [&](const DeviceCall& c) {
    if (temperature == nullptr) return Return::kInvalidArgument;
    if (temperature->version != abi::kTemperatureVersion) return Return::kArgumentVersionMismatch;
    if (temperature->sensor_type != abi::TemperatureSensor::kGpu) return Return::kInvalidArgument;
    temperature->temperature = static_cast<int>(celsius(c));
    return Return::kSuccess;
  });
}

NVML_VALUE(with_gpu, DeviceGetCurrentClocksEventReasons, unsigned long long, clock_reasons(c))
NVML_ALIAS(DeviceGetCurrentClocksThrottleReasons, DeviceGetCurrentClocksEventReasons);
NVML_FUNCTION(DeviceGetClockInfo, Device device, abi::ClockType type, unsigned* mhz) {
  return with_gpu(__func__, device, [&](const DeviceCall& c) {
    return give(mhz, type == abi::ClockType::kMem ? c.device.memory_clock_mhz()
                                                  : c.device.sm_clock_mhz(c.now));
  });
}

NVML_FUNCTION(DeviceSetGpuLockedClocks, Device device, unsigned min_mhz, unsigned max_mhz) {
  if (min_mhz > max_mhz || max_mhz == 0) return Return::kInvalidArgument;
  return lock_clock(__func__, device, max_mhz, &Simulator::lock_clock);
}
NVML_FUNCTION(DeviceResetGpuLockedClocks, Device device) {
  return lock_clock(__func__, device, std::nullopt, &Simulator::lock_clock);
}
NVML_FUNCTION(DeviceSetMemoryLockedClocks, Device device, unsigned min_mhz, unsigned max_mhz) {
  if (min_mhz > max_mhz || max_mhz == 0) return Return::kInvalidArgument;
  return lock_clock(__func__, device, max_mhz, &Simulator::lock_memory_clock);
}
NVML_FUNCTION(DeviceResetMemoryLockedClocks, Device device) {
  return lock_clock(__func__, device, std::nullopt, &Simulator::lock_memory_clock);
}

NVML_FUNCTION(DeviceGetSupportedMemoryClocks, Device device, unsigned* count, unsigned* mhz) {
  return with_gpu(__func__, device,
                  [&](const DeviceCall& c) { return give_list(memory_clocks(c), count, mhz); });
}

NVML_FUNCTION(DeviceGetSupportedGraphicsClocks, Device device, unsigned memory_mhz, unsigned* count,
              unsigned* mhz) {
  return with_gpu(__func__, device, [&](const DeviceCall& c) {
    const auto& clocks = c.spec.clocks;
    const auto known = memory_clocks(c);
    if (std::find(known.begin(), known.end(), memory_mhz) == known.end()) return Return::kNotFound;
    std::vector<unsigned> steps;
    for (unsigned at = clocks.sm_max_mhz; at >= clocks.sm_idle_mhz && at >= 15; at -= 15) {
      steps.push_back(at);
    }
    return give_list(steps, count, mhz);
  });
}

}  // namespace jouleprof::nvml_sim
