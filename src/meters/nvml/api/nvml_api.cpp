#include "meters/nvml/api/nvml_api.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace jouleprof::meters::nvml {
namespace {

using abi::Return;

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
  bind(lib, api.gpu_instance_id, {"nvmlDeviceGetGpuInstanceId"});
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
  bind(lib, api.gpm_alloc, {"nvmlGpmSampleAlloc"});
  bind(lib, api.gpm_free, {"nvmlGpmSampleFree"});
  bind(lib, api.gpm_instance_sample, {"nvmlGpmMigSampleGet"});
  bind(lib, api.gpm_metrics, {"nvmlGpmMetricsGet"});
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

Errc code_of(Return code) {
  if (is_unsupported(code)) return Errc::kUnsupported;
  switch (code) {
    case Return::kNoPermission:
    case Return::kOperatingSystem:
      return Errc::kPermissionDenied;
    case Return::kTimeout:
      return Errc::kTimeout;
    case Return::kNotFound:
    case Return::kGpuNotFound:
    case Return::kDriverNotLoaded:
    case Return::kLibraryNotFound:
      return Errc::kNotFound;
    default:
      return Errc::kUnavailable;
  }
}

template <typename T>
std::optional<double> unless_sentinel(T value) {
  if (is_sentinel(value)) return std::nullopt;
  return static_cast<double>(value);
}

constexpr const char* kLibraryName = "libnvidia-ml.so.1";

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

Result<std::shared_ptr<const NvmlApi>> open_nvml(const std::string& path) {
  auto api = load_nvml(path);
  if (!api) return forward_error(api);
  if (const Return code = api->init(); code != Return::kSuccess) {
    Error error = nvml_error(*api, "nvmlInit", code);
    if (const auto fix = fix_for(code); !fix.empty()) error.message += ": " + fix;
    return tl::unexpected(std::move(error));
  }
  return std::shared_ptr<const NvmlApi>(new NvmlApi(std::move(*api)), [](const NvmlApi* opened) {
    opened->shutdown();
    delete opened;
  });
}

bool is_lost(Return code) {
  return code == Return::kGpuIsLost || code == Return::kResetRequired ||
         code == Return::kUninitialized || code == Return::kDriverNotLoaded;
}

bool is_unsupported(Return code) {
  return code == Return::kNotSupported || code == Return::kFunctionNotFound ||
         code == Return::kDeprecated || code == Return::kArgumentVersionMismatch;
}

Error nvml_error(const NvmlApi& api, std::string_view what, Return code) {
  const char* words = api.error_string != nullptr ? api.error_string(code) : nullptr;
  if (words == nullptr) {
    return {code_of(code), fmt::format("{}: NVML error {}", what, static_cast<unsigned>(code))};
  }
  return {code_of(code), fmt::format("{}: {}", what, words)};
}

std::string fix_for(Return code) {
  switch (code) {
    case Return::kDriverNotLoaded:
      return "load the driver's kernel module (modprobe nvidia) or reboot";
    case Return::kLibRmVersionMismatch:
      return "the driver was updated while the old one is loaded: reboot, or unload and load the "
             "nvidia kernel modules; in a container, restart it";
    case Return::kNoPermission:
    case Return::kOperatingSystem:
      return "this user may not open /dev/nvidia*: ask for access to the device files; in a "
             "container, start it with the GPUs (docker run --gpus all)";
    case Return::kGpuIsLost:
      return "the GPU fell off the bus: see the Xid messages in the kernel's log, then reboot";
    case Return::kResetRequired:
      return "reset the GPU (nvidia-smi --gpu-reset) or reboot";
    case Return::kGpuNotFound:
      return "no NVIDIA GPU is visible here: check lspci and, in a container, its --gpus option";
    case Return::kFunctionNotFound:
      return "a newer NVIDIA driver offers it";
    default:
      return {};
  }
}

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

NvmlClock NvmlClock::complete(NvmlClock given) {
  if (!given.now) given.now = &ClockPoint::now;
  if (!given.thread_cpu_time) given.thread_cpu_time = &jouleprof::thread_cpu_time;
  if (!given.sleep) given.sleep = [](Duration d) { std::this_thread::sleep_for(d); };
  return given;
}

}  // namespace jouleprof::meters::nvml
