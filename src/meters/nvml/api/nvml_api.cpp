#include "meters/nvml/api/nvml_api.h"

#include <fmt/format.h>

#include <initializer_list>
#include <utility>

namespace jouleprof::meters::nvml {
namespace {

// Binds the first of `names` that the library has.
template <typename F>
void bind(const DynLib& library, F*& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (library.bind(function, name)) return;
  }
}

void bind_identity(const DynLib& lib, NvmlApi& api) {
  bind(lib, api.init, {"nvmlInit_v2", "nvmlInit"});
  bind(lib, api.shutdown, {"nvmlShutdown"});
  bind(lib, api.device_count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  bind(lib, api.device_by_index, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  bind(lib, api.error_string, {"nvmlErrorString"});
  bind(lib, api.driver_version, {"nvmlSystemGetDriverVersion"});
  bind(lib, api.name, {"nvmlDeviceGetName"});
  bind(lib, api.uuid, {"nvmlDeviceGetUUID"});
  bind(lib, api.architecture, {"nvmlDeviceGetArchitecture"});
  bind(lib, api.compute_capability, {"nvmlDeviceGetCudaComputeCapability"});
  bind(lib, api.mig_mode, {"nvmlDeviceGetMigMode"});
  bind(lib, api.max_mig_devices, {"nvmlDeviceGetMaxMigDeviceCount"});
  bind(lib, api.mig_device_by_index, {"nvmlDeviceGetMigDeviceHandleByIndex"});
}

void bind_sensors(const DynLib& lib, NvmlApi& api) {
  bind(lib, api.total_energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  bind(lib, api.samples, {"nvmlDeviceGetSamples"});
  bind(lib, api.field_values, {"nvmlDeviceGetFieldValues"});
  bind(lib, api.power_usage, {"nvmlDeviceGetPowerUsage"});
  bind(lib, api.clock_info, {"nvmlDeviceGetClockInfo"});
  bind(lib, api.temperature, {"nvmlDeviceGetTemperature"});
  bind(lib, api.temperature_v, {"nvmlDeviceGetTemperatureV"});
  bind(lib, api.fan_speed, {"nvmlDeviceGetFanSpeed"});
  bind(lib, api.utilisation, {"nvmlDeviceGetUtilizationRates"});
  bind(lib, api.encoder_utilisation, {"nvmlDeviceGetEncoderUtilization"});
  bind(lib, api.decoder_utilisation, {"nvmlDeviceGetDecoderUtilization"});
  bind(lib, api.jpeg_utilisation, {"nvmlDeviceGetJpgUtilization"});
  bind(lib, api.ofa_utilisation, {"nvmlDeviceGetOfaUtilization"});
  bind(lib, api.memory_info, {"nvmlDeviceGetMemoryInfo"});
  bind(lib, api.memory_info_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  bind(lib, api.power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  bind(lib, api.clock_event_reasons,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  bind(lib, api.compute_processes,
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  bind(lib, api.graphics_processes,
       {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"});
  bind(lib, api.process_utilisation, {"nvmlDeviceGetProcessUtilization"});
}

void bind_controls(const DynLib& lib, NvmlApi& api) {
  bind(lib, api.requested_limit, {"nvmlDeviceGetPowerManagementLimit"});
  bind(lib, api.default_limit, {"nvmlDeviceGetPowerManagementDefaultLimit"});
  bind(lib, api.limit_range, {"nvmlDeviceGetPowerManagementLimitConstraints"});
  bind(lib, api.set_limit, {"nvmlDeviceSetPowerManagementLimit"});
  bind(lib, api.memory_clocks, {"nvmlDeviceGetSupportedMemoryClocks"});
  bind(lib, api.graphics_clocks, {"nvmlDeviceGetSupportedGraphicsClocks"});
  bind(lib, api.lock_clocks, {"nvmlDeviceSetGpuLockedClocks"});
  bind(lib, api.unlock_clocks, {"nvmlDeviceResetGpuLockedClocks"});
  bind(lib, api.lock_memory_clocks, {"nvmlDeviceSetMemoryLockedClocks"});
  bind(lib, api.unlock_memory_clocks, {"nvmlDeviceResetMemoryLockedClocks"});
  bind(lib, api.persistence, {"nvmlDeviceGetPersistenceMode"});
}

}  // namespace

Result<NvmlApi> load_nvml(const std::string& path) {
  auto library = DynLib::open(path.empty() ? kLibraryName : path);
  if (!library && path.empty()) {
    return fail(Errc::kNotFound,
                fmt::format("{} cannot be loaded ({}). Install the NVIDIA driver; in a container, "
                            "start it with the GPUs (docker run --gpus all)",
                            kLibraryName, library.error().message));
  }
  if (!library) {
    return fail(Errc::kNotFound,
                fmt::format("the NVML library {} cannot be loaded ({}). Check the path", path,
                            library.error().message));
  }
  NvmlApi api;
  api.library = std::make_shared<DynLib>(std::move(*library));
  bind_identity(*api.library, api);
  bind_sensors(*api.library, api);
  bind_controls(*api.library, api);
  api.simulated = api.library->symbol("jouleprof_nvml_sim_version") != nullptr;
  if (!api.init || !api.shutdown || !api.device_count || !api.device_by_index) {
    return fail(Errc::kUnsupported,
                fmt::format("{} is not an NVML library: it does not export nvmlInit, nvmlShutdown, "
                            "nvmlDeviceGetCount and nvmlDeviceGetHandleByIndex",
                            path.empty() ? kLibraryName : path));
  }
  return api;
}

}  // namespace jouleprof::meters::nvml
