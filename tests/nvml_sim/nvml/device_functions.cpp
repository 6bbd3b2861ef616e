// The devices and their identity; MIG.
#include <fmt/format.h>

#include "nvml_sim/nvml/dispatch.h"

namespace jouleprof::nvml_sim {
namespace {

// The handle of a GPU, unless the GPU is lost.
Return give_gpu(const Session& s, const char* call, unsigned index, Device* device) {
  const auto& simulator = *s.simulator;
  if (const auto failed = simulator.faults().failure(call, index, simulator.now())) return *failed;
  return give(device, s.gpu(index));
}

// Current and pending mode; absent before Ampere.
std::optional<std::pair<unsigned, unsigned>> mig_mode(const DeviceSpec& spec) {
  if (spec.board->compute_major < 8) return std::nullopt;
  const unsigned mode = spec.mig.empty() ? 0 : abi::kMigEnabled;
  return std::pair(mode, mode);
}

}  // namespace

NVML_FUNCTION(DeviceGetCount_v2, unsigned* count) {
  return with_library(__func__, [&](const Session& s) {
    return give(count, static_cast<unsigned>(s.gpus().size()));
  });
}
NVML_ALIAS(DeviceGetCount, DeviceGetCount_v2);

NVML_FUNCTION(DeviceGetHandleByIndex_v2, unsigned index, Device* device) {
  return with_library(__func__, [&, call = __func__](const Session& s) {
    if (index >= s.gpus().size()) return Return::kInvalidArgument;
    return give_gpu(s, call, index, device);
  });
}
NVML_ALIAS(DeviceGetHandleByIndex, DeviceGetHandleByIndex_v2);

NVML_FUNCTION(DeviceGetHandleByUUID, const char* uuid, Device* device) {
  return with_library(__func__, [&, call = __func__](const Session& s) {
    if (uuid == nullptr) return Return::kInvalidArgument;
    for (const auto& gpu : s.gpus()) {
      if (gpu->spec().uuid == uuid) return give_gpu(s, call, gpu->index(), device);
    }
    for (const auto& handle : s.handles) {
      if (handle->mig != nullptr && handle->mig->uuid == uuid) return give(device, handle.get());
    }
    return Return::kNotFound;
  });
}

NVML_TEXT(with_device, DeviceGetName,
          c.handle.mig != nullptr ? fmt::format("{} MIG {}", c.spec.name, c.handle.mig->profile)
                                  : c.spec.name)
NVML_TEXT(with_device, DeviceGetUUID, c.handle.mig != nullptr ? c.handle.mig->uuid : c.spec.uuid)
NVML_VALUE(with_device, DeviceGetArchitecture, abi::Architecture, c.spec.board->architecture)
NVML_FUNCTION(DeviceGetCudaComputeCapability, Device device, int* major, int* minor) {
  return with_device(__func__, device, [&](const DeviceCall& c) {
    if (minor == nullptr) return Return::kInvalidArgument;
    *minor = c.spec.board->compute_minor;
    return give(major, c.spec.board->compute_major);
  });
}
NVML_VALUE(with_gpu, DeviceGetPersistenceMode, abi::EnableState, abi::EnableState::kEnabled)
// Only superchips have this link; the driver of any other GPU does not support the call.
NVML_VALUE(with_gpu, DeviceGetC2cModeInfoV, abi::C2cModeInfo,
           c.spec.board->is_superchip ? std::optional(abi::C2cModeInfo{1}) : std::nullopt)

NVML_PAIR(DeviceGetMigMode, unsigned, mig_mode(c.spec))
NVML_VALUE(with_gpu, DeviceGetMaxMigDeviceCount, unsigned, c.spec.mig.empty() ? 0U : 7U)
NVML_FUNCTION(DeviceGetMigDeviceHandleByIndex, Device device, unsigned index, Device* mig_device) {
  return with_gpu(__func__, device, [&](const DeviceCall& c) {
    if (index >= 7) return Return::kInvalidArgument;
    const Device mig = c.session.mig(c.device, index);
    return mig == nullptr ? Return::kNotFound : give(mig_device, mig);
  });
}
NVML_VALUE(with_device, DeviceGetGpuInstanceId, unsigned,
           c.handle.mig != nullptr ? std::optional(c.handle.mig->gpu_instance_id) : std::nullopt)

}  // namespace jouleprof::nvml_sim
