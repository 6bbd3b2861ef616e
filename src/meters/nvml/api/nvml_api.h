// The driver's library as a struct of function pointers, and how to find it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "abi/nvml_abi.h"
#include "base/clock.h"
#include "base/process/dynlib.h"
#include "base/result.h"
#include "jouleprof/units.h"

namespace jouleprof::meters::nvml {

// Where versions of a function share one layout, the newest of the library. Any pointer but the
// first four may be null: its readings are then not available. Copies share the library.
struct NvmlApi {
  abi::fn::Init_v2* init = nullptr;
  abi::fn::Shutdown* shutdown = nullptr;
  abi::fn::DeviceGetCount_v2* device_count = nullptr;
  abi::fn::DeviceGetHandleByIndex_v2* device_by_index = nullptr;

  abi::fn::ErrorString* error_string = nullptr;
  abi::fn::SystemGetDriverVersion* driver_version = nullptr;

  abi::fn::DeviceGetName* name = nullptr;
  abi::fn::DeviceGetUUID* uuid = nullptr;
  abi::fn::DeviceGetArchitecture* architecture = nullptr;
  abi::fn::DeviceGetCudaComputeCapability* compute_capability = nullptr;
  abi::fn::DeviceGetMigMode* mig_mode = nullptr;
  abi::fn::DeviceGetMaxMigDeviceCount* max_mig_devices = nullptr;
  abi::fn::DeviceGetMigDeviceHandleByIndex* mig_device_by_index = nullptr;
  abi::fn::DeviceGetGpuInstanceId* gpu_instance_id = nullptr;

  abi::fn::DeviceGetTotalEnergyConsumption* total_energy = nullptr;
  abi::fn::DeviceGetSamples* samples = nullptr;
  abi::fn::DeviceGetFieldValues* field_values = nullptr;
  abi::fn::DeviceGetPowerUsage* power_usage = nullptr;

  abi::fn::DeviceGetClockInfo* clock_info = nullptr;
  abi::fn::DeviceGetTemperature* temperature = nullptr;
  abi::fn::DeviceGetTemperatureV* temperature_v = nullptr;
  abi::fn::DeviceGetFanSpeed* fan_speed = nullptr;
  abi::fn::DeviceGetUtilizationRates* utilisation = nullptr;
  abi::fn::DeviceGetEncoderUtilization* encoder_utilisation = nullptr;
  abi::fn::DeviceGetDecoderUtilization* decoder_utilisation = nullptr;
  abi::fn::DeviceGetJpgUtilization* jpeg_utilisation = nullptr;
  abi::fn::DeviceGetOfaUtilization* ofa_utilisation = nullptr;
  abi::fn::DeviceGetMemoryInfo* memory_info = nullptr;
  abi::fn::DeviceGetMemoryInfo_v2* memory_info_v2 = nullptr;
  abi::fn::DeviceGetEnforcedPowerLimit* power_limit = nullptr;
  abi::fn::DeviceGetCurrentClocksEventReasons* clock_event_reasons = nullptr;

  // Limits and clocks: what was requested, what may be set, and setting it (meters/control).
  abi::fn::DeviceGetPowerManagementLimit* requested_limit = nullptr;
  abi::fn::DeviceGetPowerManagementDefaultLimit* default_limit = nullptr;
  abi::fn::DeviceGetPowerManagementLimitConstraints* limit_range = nullptr;
  abi::fn::DeviceSetPowerManagementLimit* set_limit = nullptr;
  abi::fn::DeviceGetSupportedMemoryClocks* memory_clocks = nullptr;
  abi::fn::DeviceGetSupportedGraphicsClocks* graphics_clocks = nullptr;
  abi::fn::DeviceSetGpuLockedClocks* lock_clocks = nullptr;
  abi::fn::DeviceResetGpuLockedClocks* unlock_clocks = nullptr;
  abi::fn::DeviceSetMemoryLockedClocks* lock_memory_clocks = nullptr;
  abi::fn::DeviceResetMemoryLockedClocks* unlock_memory_clocks = nullptr;
  abi::fn::DeviceGetPersistenceMode* persistence = nullptr;

  abi::fn::DeviceGetComputeRunningProcesses_v3* compute_processes = nullptr;
  abi::fn::DeviceGetGraphicsRunningProcesses_v3* graphics_processes = nullptr;
  abi::fn::DeviceGetProcessUtilization* process_utilisation = nullptr;

  abi::fn::GpmSampleAlloc* gpm_alloc = nullptr;
  abi::fn::GpmSampleFree* gpm_free = nullptr;
  abi::fn::GpmMigSampleGet* gpm_instance_sample = nullptr;
  abi::fn::GpmMetricsGet* gpm_metrics = nullptr;

  // The library identifies itself as a simulator: its values are not measured.
  bool simulated = false;
  std::shared_ptr<DynLib> library;
};

// Loads `path` (empty: libnvidia-ml.so.1) without initialising it. Errors: not_found, with what to
// install; unsupported when the file is no NVML library.
Result<NvmlApi> load_nvml(const std::string& path);
// Initialised until the last owner is gone. Errors: also those of nvmlInit.
Result<std::shared_ptr<const NvmlApi>> open_nvml(const std::string& path);

// --- NVML's return codes as errors ---

// The device is lost for now: off the bus, waiting for a reset, or without a driver.
bool is_lost(abi::Return code);

// The device or driver does not offer this, and will not later.
bool is_unsupported(abi::Return code);

// What failed, in the driver's words: "nvmlInit: Driver Not Loaded".
Error nvml_error(const NvmlApi& api, std::string_view what, abi::Return code);

// The least invasive thing that would help; empty when nothing would.
std::string fix_for(abi::Return code);

// --- Converts NVML's typed values; some mark a missing value ---

// The driver's marks for "no value": all bits set in 32 or 64 bits, and the former times 1000.
constexpr bool is_sentinel(unsigned long long value) {
  return value == 0xFFFFFFFFULL || value == ~0ULL || value == 4294967295000ULL;
}

// The number in a tagged value; absent for a type not known here and for sentinels.
std::optional<double> number(abi::ValueType type, const abi::Value& value);

// A power given in milliwatts. Errors: unavailable for a sentinel, corrupt for a negative value or
// an impossible one (100 kW); `what` names the source.
Result<Power> power_from(std::string_view what, std::optional<double> milliwatts);

// The meter's clocks; tests replace them.
// Unset members mean the system's.
struct NvmlClock {
  std::function<ClockPoint()> now;
  std::function<Duration()> thread_cpu_time;  // CPU time of the calling thread
  std::function<void(Duration)> sleep;

  // All members set.
  static NvmlClock complete(NvmlClock given);
};

}  // namespace jouleprof::meters::nvml
