// The devices and their identity; MIG.
#include <fmt/format.h>

#include <cctype>
#include <cstdio>

#include "nvml_sim/nvml/dispatch.h"

namespace jouleprof::nvml_sim {
namespace {

// The handle of a GPU, unless the GPU is lost.
Return give_gpu(const Session& s, const char* call, unsigned index, Device* device) {
  const auto& simulator = *s.simulator;
  if (const auto failed = simulator.faults().failure(call, index, simulator.now())) return *failed;
  return give(device, s.gpu(index));
}

// The first GPU whose `name_of` is `wanted`.
template <typename F>
Return find_gpu(const char* call, const char* wanted, Device* device, F name_of) {
  return with_library(call, [&](const Session& s) {
    if (wanted == nullptr) return Return::kInvalidArgument;
    for (const auto& gpu : s.gpus()) {
      if (name_of(gpu->spec()) == wanted) return give_gpu(s, call, gpu->index(), device);
    }
    return Return::kNotFound;
  });
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

abi::PciInfo pci_info(const DeviceSpec& spec) {
  abi::PciInfo pci{};
  std::sscanf(spec.pci_bus_id.c_str(), "%x:%x:%x", &pci.domain, &pci.bus, &pci.device);
  pci.pci_device_id = 0x233010de;
  pci.pci_subsystem_id = 0x16c110de;
  std::snprintf(pci.bus_id, sizeof pci.bus_id, "%s", spec.pci_bus_id.c_str());
  std::snprintf(pci.bus_id_legacy, sizeof pci.bus_id_legacy, "%04X:%02X:%02X.0",
                pci.domain & 0xffffU, pci.bus & 0xffU, pci.device & 0xffU);
  return pci;
}

abi::Brand brand_of(const std::string& name) {
  if (name.find("GeForce") != std::string::npos) return abi::Brand::kGeforce;
  return name.starts_with("Tesla") ? abi::Brand::kTesla : abi::Brand::kNvidia;
}

// Current and pending mode; absent before Ampere's data-centre boards.
std::optional<std::pair<unsigned, unsigned>> mig_mode(const DeviceSpec& spec) {
  const auto [major, minor] = spec.compute_capability;
  if (major < 8 || (major == 8 && minor != 0)) return std::nullopt;
  const unsigned mode = spec.mig.empty() ? abi::kMigDisabled : abi::kMigEnabled;
  return std::pair(mode, mode);
}

// A number of a MIG device; a GPU has none.
std::optional<unsigned> of_mig(const DeviceCall& c, unsigned MigSpec::*member) {
  return c.handle.mig != nullptr ? std::optional(c.handle.mig->*member) : std::nullopt;
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
  const Return of_gpu =
      find_gpu(__func__, uuid, device, [](const DeviceSpec& spec) { return spec.uuid; });
  if (of_gpu != Return::kNotFound) return of_gpu;
  return with_library(__func__, [&](const Session& s) {
    for (const auto& handle : s.handles) {
      if (handle->mig != nullptr && handle->mig->uuid == uuid) return give(device, handle.get());
    }
    return Return::kNotFound;
  });
}

NVML_FUNCTION(DeviceGetHandleBySerial, const char* serial, Device* device) {
  return find_gpu(__func__, serial, device, [](const DeviceSpec& spec) { return spec.serial; });
}

NVML_FUNCTION(DeviceGetHandleByPciBusId_v2, const char* bus_id, Device* device) {
  if (bus_id == nullptr) return Return::kInvalidArgument;
  // "0000:01:00.0" or "00000000:01:00.0", in upper or lower case.
  std::string wanted = upper(bus_id);
  if (wanted.size() == 12) wanted.insert(0, "0000");
  return find_gpu(__func__, wanted.c_str(), device,
                  [](const DeviceSpec& spec) { return upper(spec.pci_bus_id); });
}
NVML_ALIAS(DeviceGetHandleByPciBusId, DeviceGetHandleByPciBusId_v2);

NVML_TEXT(with_device, DeviceGetName,
          c.handle.mig != nullptr ? fmt::format("{} MIG {}", c.spec.name, c.handle.mig->profile)
                                  : c.spec.name)
NVML_TEXT(with_device, DeviceGetUUID, c.handle.mig != nullptr ? c.handle.mig->uuid : c.spec.uuid)
NVML_TEXT(with_gpu, DeviceGetSerial, c.spec.serial)
NVML_VALUE(with_gpu, DeviceGetIndex, unsigned, c.device.index())
NVML_VALUE(with_gpu, DeviceGetMinorNumber, unsigned, c.device.index())
NVML_VALUE(with_device, DeviceGetPciInfo_v3, abi::PciInfo, pci_info(c.spec))
NVML_ALIAS(DeviceGetPciInfo_v2, DeviceGetPciInfo_v3);
NVML_ALIAS(DeviceGetPciInfo, DeviceGetPciInfo_v3);
NVML_VALUE(with_gpu, DeviceGetBrand, abi::Brand, brand_of(c.spec.name))
NVML_VALUE(with_device, DeviceGetArchitecture, abi::Architecture, c.spec.architecture)
NVML_FUNCTION(DeviceGetCudaComputeCapability, Device device, int* major, int* minor) {
  return with_device(__func__, device, [&](const DeviceCall& c) {
    if (minor == nullptr) return Return::kInvalidArgument;
    *minor = c.spec.compute_capability[1];
    return give(major, c.spec.compute_capability[0]);
  });
}
NVML_VALUE(with_gpu, DeviceGetComputeMode, abi::ComputeMode, abi::ComputeMode::kDefault)
NVML_VALUE(with_gpu, DeviceGetPersistenceMode, abi::EnableState, abi::EnableState::kEnabled)
NVML_FUNCTION(DeviceSetPersistenceMode, Device device, abi::EnableState mode) {
  return with_gpu(__func__, device, [&](const DeviceCall&) {
    return mode == abi::EnableState::kEnabled ? Return::kSuccess : Return::kNoPermission;
  });
}
// Only superchips have this link; the driver of any other GPU does not support the call.
NVML_VALUE(with_gpu, DeviceGetC2cModeInfoV, abi::C2cModeInfo,
           c.spec.sensors.module_scope ? std::optional(abi::C2cModeInfo{1}) : std::nullopt)

NVML_PAIR(DeviceGetMigMode, unsigned, mig_mode(c.spec))
NVML_VALUE(with_gpu, DeviceGetMaxMigDeviceCount, unsigned, c.spec.mig.empty() ? 0U : 7U)
NVML_FUNCTION(DeviceGetMigDeviceHandleByIndex, Device device, unsigned index, Device* mig_device) {
  return with_gpu(__func__, device, [&](const DeviceCall& c) {
    if (index >= 7) return Return::kInvalidArgument;
    const Device mig = c.session.mig(c.device, index);
    return mig == nullptr ? Return::kNotFound : give(mig_device, mig);
  });
}
NVML_VALUE(with_device, DeviceIsMigDeviceHandle, unsigned, c.handle.mig != nullptr ? 1U : 0U)
NVML_FUNCTION(DeviceGetDeviceHandleFromMigDeviceHandle, Device mig_device, Device* device) {
  return with_device(__func__, mig_device, [&](const DeviceCall& c) {
    if (c.handle.mig == nullptr) return Return::kInvalidArgument;
    return give(device, c.session.gpu(c.device.index()));
  });
}
NVML_VALUE(with_device, DeviceGetGpuInstanceId, unsigned, of_mig(c, &MigSpec::gpu_instance_id))
NVML_VALUE(with_device, DeviceGetComputeInstanceId, unsigned,
           of_mig(c, &MigSpec::compute_instance_id))

}  // namespace jouleprof::nvml_sim
