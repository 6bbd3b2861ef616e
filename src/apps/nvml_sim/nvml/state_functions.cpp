// Memory, utilisation, temperature, clocks.
#include <cmath>

#include "apps/nvml_sim/nvml/dispatch.h"

namespace sim = jouleprof::nvml_sim;
namespace abi = jouleprof::abi;
using abi::Device;
using abi::Return;

namespace {

// What runs on a MIG device is told by its parent.
abi::Memory memory_of(const sim::DeviceCall& c) {
  abi::Memory memory{};
  if (c.handle.mig != nullptr) {
    memory.total = c.handle.mig->memory_bytes;
    memory.used = std::min<unsigned long long>(memory.total, 16U << 20U);
  } else {
    unsigned long long used = c.device.spec().memory_used_bytes;
    for (const auto& process : c.device.processes()) used += process.memory_bytes;
    memory.total = c.device.spec().memory_total_bytes;
    memory.used = std::min(memory.total, used);
  }
  memory.free = memory.total - memory.used;
  return memory;
}

// Utilisation of a GPU that is cut in MIG devices is not told.
bool tells_utilisation(const sim::DeviceCall& c) { return c.device.spec().mig.empty(); }

Return engine_utilisation(const char* call, Device device, unsigned* percent, unsigned* period_us) {
  return sim::with_gpu(call, device, [&](const sim::DeviceCall& c) {
    if (!tells_utilisation(c)) return Return::kNotSupported;
    if (period_us == nullptr) return Return::kInvalidArgument;
    *period_us = 166'666;
    return sim::give(percent, 0);
  });
}

std::optional<unsigned> clock_mhz(const sim::DeviceCall& c, abi::ClockType type) {
  switch (type) {
    case abi::ClockType::kGraphics:
    case abi::ClockType::kSm:
    case abi::ClockType::kVideo:
      return c.device.sm_clock_mhz(c.now);
    case abi::ClockType::kMem:
      return c.device.spec().clocks.memory_mhz;
  }
  return std::nullopt;
}

std::optional<unsigned> max_clock_mhz(const sim::DeviceCall& c, abi::ClockType type) {
  const auto& clocks = c.device.spec().clocks;
  if (type == abi::ClockType::kMem) return clocks.memory_mhz;
  return type <= abi::ClockType::kVideo ? std::optional(clocks.sm_max_mhz) : std::nullopt;
}

Return give_clock(const sim::DeviceCall& c, unsigned* mhz, std::optional<unsigned> value) {
  return value ? sim::give(mhz, c.shown(*value)) : Return::kInvalidArgument;
}

constexpr unsigned long long kReasons = abi::kReasonGpuIdle | abi::kReasonSwPowerCap |
                                        abi::kReasonHwSlowdown | abi::kReasonSwThermalSlowdown |
                                        abi::kReasonHwThermalSlowdown;

bool is_idle(const sim::DeviceCall& c) {
  return c.device.watts(c.now) <= c.device.spec().idle_watts;
}

unsigned celsius(const sim::DeviceCall& c) {
  return c.shown(
      static_cast<unsigned>(std::lround(std::max(0.0, c.device.temperature_celsius(c.now)))));
}

}  // namespace

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetMemoryInfo(Device device, abi::Memory* memory) {
  return sim::with_device(
      __func__, device, [&](const sim::DeviceCall& c) { return sim::give(memory, memory_of(c)); });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetMemoryInfo_v2(Device device, abi::MemoryV2* memory) {
  return sim::with_device(__func__, device, [&](const sim::DeviceCall& c) {
    if (memory == nullptr) return Return::kInvalidArgument;
    if (memory->version != abi::kMemoryV2Version) return Return::kArgumentVersionMismatch;
    const abi::Memory v1 = memory_of(c);
    *memory = {memory->version, v1.total, 0, v1.free, v1.used};
    return Return::kSuccess;
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetUtilizationRates(Device device,
                                                           abi::Utilization* utilization) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    if (!tells_utilisation(c)) return Return::kNotSupported;
    const unsigned gpu = c.shown(sim::percent(c.device.utilisation(c.now)));
    return sim::give(utilization, {gpu, gpu / 2});
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetEncoderUtilization(Device device, unsigned* percent,
                                                             unsigned* period_us) {
  return engine_utilisation(__func__, device, percent, period_us);
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetDecoderUtilization(Device device, unsigned* percent,
                                                             unsigned* period_us) {
  return engine_utilisation(__func__, device, percent, period_us);
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetJpgUtilization(Device device, unsigned* percent,
                                                         unsigned* period_us) {
  return engine_utilisation(__func__, device, percent, period_us);
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetOfaUtilization(Device device, unsigned* percent,
                                                         unsigned* period_us) {
  return engine_utilisation(__func__, device, percent, period_us);
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetTemperature(Device device, abi::TemperatureSensor sensor,
                                                      unsigned* out) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    if (sensor != abi::TemperatureSensor::kGpu) return Return::kInvalidArgument;
    return sim::give(out, celsius(c));
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetTemperatureV(Device device,
                                                       abi::Temperature* temperature) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    if (temperature == nullptr) return Return::kInvalidArgument;
    if (temperature->version != abi::kTemperatureVersion) return Return::kArgumentVersionMismatch;
    if (temperature->sensor_type != abi::TemperatureSensor::kGpu) return Return::kInvalidArgument;
    temperature->temperature = static_cast<int>(celsius(c));
    return Return::kSuccess;
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetTemperatureThreshold(Device device,
                                                               abi::TemperatureThreshold threshold,
                                                               unsigned* out) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall&) {
    switch (threshold) {
      case abi::TemperatureThreshold::kShutdown:
        return sim::give(out, 92);
      case abi::TemperatureThreshold::kSlowdown:
        return sim::give(out, 89);
      case abi::TemperatureThreshold::kMemMax:
        return sim::give(out, 95);
      case abi::TemperatureThreshold::kGpuMax:
        return sim::give(out, 87);
    }
    return Return::kInvalidArgument;
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetPerformanceState(Device device, abi::PState* state) {
  return sim::with_gpu(__func__, device,
                       [&](const sim::DeviceCall&) { return sim::give(state, abi::PState::k0); });
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetPowerState(Device device, abi::PState* state) {
  return nvmlDeviceGetPerformanceState(device, state);
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetCurrentClocksEventReasons(Device device,
                                                                    unsigned long long* reasons) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    return sim::give(reasons, c.shown(is_idle(c)                 ? abi::kReasonGpuIdle
                                      : c.device.at_limit(c.now) ? abi::kReasonSwPowerCap
                                                                 : 0ULL));
  });
}
JOULEPROF_NVML_EXPORT Return
nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetSupportedClocksEventReasons(Device device,
                                                                      unsigned long long* reasons) {
  return sim::with_gpu(__func__, device,
                       [&](const sim::DeviceCall&) { return sim::give(reasons, kReasons); });
}
JOULEPROF_NVML_EXPORT Return
nvmlDeviceGetSupportedClocksThrottleReasons(Device device, unsigned long long* reasons) {
  return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetClockInfo(Device device, abi::ClockType type,
                                                    unsigned* mhz) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    return give_clock(c, mhz, clock_mhz(c, type));
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetMaxClockInfo(Device device, abi::ClockType type,
                                                       unsigned* mhz) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    return give_clock(c, mhz, max_clock_mhz(c, type));
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetClock(Device device, abi::ClockType type, abi::ClockId id,
                                                unsigned* mhz) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    return give_clock(c, mhz,
                      id == abi::ClockId::kCurrent ? clock_mhz(c, type) : max_clock_mhz(c, type));
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetApplicationsClock(Device device, abi::ClockType type,
                                                            unsigned* mhz) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    return give_clock(c, mhz, max_clock_mhz(c, type));
  });
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetDefaultApplicationsClock(Device device,
                                                                   abi::ClockType type,
                                                                   unsigned* mhz) {
  return nvmlDeviceGetApplicationsClock(device, type, mhz);
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetSupportedMemoryClocks(Device device, unsigned* count,
                                                                unsigned* mhz) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    return sim::give_list(std::vector<unsigned>{c.device.spec().clocks.memory_mhz}, count, mhz);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetSupportedGraphicsClocks(Device device,
                                                                  unsigned memory_mhz,
                                                                  unsigned* count, unsigned* mhz) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    const auto& clocks = c.device.spec().clocks;
    if (memory_mhz != clocks.memory_mhz) return Return::kNotFound;
    std::vector<unsigned> steps;
    for (unsigned at = clocks.sm_max_mhz; at >= clocks.sm_idle_mhz && at >= 15; at -= 15) {
      steps.push_back(at);
    }
    return sim::give_list(steps, count, mhz);
  });
}

JOULEPROF_NVML_CHECK(DeviceGetMemoryInfo);
JOULEPROF_NVML_CHECK(DeviceGetMemoryInfo_v2);
JOULEPROF_NVML_CHECK(DeviceGetUtilizationRates);
JOULEPROF_NVML_CHECK(DeviceGetEncoderUtilization);
JOULEPROF_NVML_CHECK(DeviceGetDecoderUtilization);
JOULEPROF_NVML_CHECK(DeviceGetJpgUtilization);
JOULEPROF_NVML_CHECK(DeviceGetOfaUtilization);
JOULEPROF_NVML_CHECK(DeviceGetTemperature);
JOULEPROF_NVML_CHECK(DeviceGetTemperatureV);
JOULEPROF_NVML_CHECK(DeviceGetTemperatureThreshold);
JOULEPROF_NVML_CHECK(DeviceGetPerformanceState);
JOULEPROF_NVML_CHECK(DeviceGetPowerState);
JOULEPROF_NVML_CHECK(DeviceGetCurrentClocksEventReasons);
JOULEPROF_NVML_CHECK(DeviceGetCurrentClocksThrottleReasons);
JOULEPROF_NVML_CHECK(DeviceGetSupportedClocksEventReasons);
JOULEPROF_NVML_CHECK(DeviceGetSupportedClocksThrottleReasons);
JOULEPROF_NVML_CHECK(DeviceGetClockInfo);
JOULEPROF_NVML_CHECK(DeviceGetMaxClockInfo);
JOULEPROF_NVML_CHECK(DeviceGetClock);
JOULEPROF_NVML_CHECK(DeviceGetApplicationsClock);
JOULEPROF_NVML_CHECK(DeviceGetDefaultApplicationsClock);
JOULEPROF_NVML_CHECK(DeviceGetSupportedMemoryClocks);
JOULEPROF_NVML_CHECK(DeviceGetSupportedGraphicsClocks);
