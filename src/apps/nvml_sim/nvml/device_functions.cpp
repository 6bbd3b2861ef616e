// Which devices there are and what they are; MIG.
#include <fmt/format.h>

#include <cstdio>

#include "apps/nvml_sim/nvml/dispatch.h"

namespace sim = jouleprof::nvml_sim;
namespace abi = jouleprof::abi;
using abi::Device;
using abi::Return;

namespace {

// The handle of a GPU, unless the GPU is lost.
Return give_gpu(const sim::Session& s, const char* call, unsigned index, Device* device) {
  const auto& simulator = *s.simulator;
  if (const auto failed = simulator.faults().failure(call, index, simulator.now())) return *failed;
  return sim::give(device, s.gpu(index));
}

// The first handle whose name of some kind is `wanted`.
template <typename F>
Return find_gpu(const char* call, const char* wanted, Device* device, F name_of) {
  return sim::with_library(call, [&](const sim::Session& s) {
    if (wanted == nullptr) return Return::kInvalidArgument;
    for (const auto& gpu : s.simulator->devices()) {
      if (name_of(gpu->spec()) == wanted) return give_gpu(s, call, gpu->index(), device);
    }
    return Return::kNotFound;
  });
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

abi::PciInfo pci_info(const sim::DeviceSpec& spec) {
  abi::PciInfo pci{};
  std::sscanf(spec.pci_bus_id.c_str(), "%x:%x:%x", &pci.domain, &pci.bus, &pci.device);
  pci.pci_device_id = 0x233010de;
  pci.pci_subsystem_id = 0x16c110de;
  std::snprintf(pci.bus_id, sizeof pci.bus_id, "%s", spec.pci_bus_id.c_str());
  std::snprintf(pci.bus_id_legacy, sizeof pci.bus_id_legacy, "%04X:%02X:%02X.0",
                pci.domain & 0xffffU, pci.bus & 0xffU, pci.device & 0xffU);
  return pci;
}

}  // namespace

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetCount_v2(unsigned* count) {
  return sim::with_library(__func__, [&](const sim::Session& s) {
    return sim::give(count, static_cast<unsigned>(s.simulator->devices().size()));
  });
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetCount(unsigned* count) {
  return nvmlDeviceGetCount_v2(count);
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  return sim::with_library(__func__, [&, call = __func__](const sim::Session& s) {
    if (index >= s.simulator->devices().size()) return Return::kInvalidArgument;
    return give_gpu(s, call, index, device);
  });
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetHandleByIndex(unsigned index, Device* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  const Return of_gpu =
      find_gpu(__func__, uuid, device, [](const sim::DeviceSpec& spec) { return spec.uuid; });
  if (of_gpu != Return::kNotFound) return of_gpu;
  return sim::with_library(__func__, [&](const sim::Session& s) {
    for (const auto& handle : s.handles) {
      if (handle->mig != nullptr && handle->mig->uuid == uuid) {
        return sim::give(device, handle.get());
      }
    }
    return Return::kNotFound;
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetHandleBySerial(const char* serial, Device* device) {
  return find_gpu(__func__, serial, device,
                  [](const sim::DeviceSpec& spec) { return spec.serial; });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Device* device) {
  if (bus_id == nullptr) return Return::kInvalidArgument;
  // "0000:01:00.0" and "00000000:01:00.0", in any case of letters.
  std::string wanted = upper(bus_id);
  if (wanted.size() == 12) wanted.insert(0, "0000");
  return find_gpu(__func__, wanted.c_str(), device,
                  [](const sim::DeviceSpec& spec) { return upper(spec.pci_bus_id); });
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetHandleByPciBusId(const char* bus_id, Device* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetName(Device device, char* name, unsigned length) {
  return sim::with_device(__func__, device, [&](const sim::DeviceCall& c) {
    const std::string& gpu = c.device.spec().name;
    const auto* mig = c.handle.mig;
    return sim::give_text(mig != nullptr ? fmt::format("{} MIG {}", gpu, mig->profile) : gpu, name,
                          length);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetUUID(Device device, char* uuid, unsigned length) {
  return sim::with_device(__func__, device, [&](const sim::DeviceCall& c) {
    return sim::give_text(c.handle.mig != nullptr ? c.handle.mig->uuid : c.device.spec().uuid, uuid,
                          length);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetSerial(Device device, char* serial, unsigned length) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    return sim::give_text(c.device.spec().serial, serial, length);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetIndex(Device device, unsigned* index) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    return sim::give(index, c.device.index());
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetMinorNumber(Device device, unsigned* minor) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    return sim::give(minor, c.device.index());
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetPciInfo_v3(Device device, abi::PciInfo* pci) {
  return sim::with_device(__func__, device, [&](const sim::DeviceCall& c) {
    return sim::give(pci, pci_info(c.device.spec()));
  });
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetPciInfo_v2(Device device, abi::PciInfo* pci) {
  return nvmlDeviceGetPciInfo_v3(device, pci);
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetPciInfo(Device device, abi::PciInfo* pci) {
  return nvmlDeviceGetPciInfo_v3(device, pci);
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetBrand(Device device, abi::Brand* brand) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    const std::string& name = c.device.spec().name;
    if (name.find("GeForce") != std::string::npos) return sim::give(brand, abi::Brand::kGeforce);
    return sim::give(brand, name.starts_with("Tesla") ? abi::Brand::kTesla : abi::Brand::kNvidia);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetArchitecture(Device device,
                                                       abi::Architecture* architecture) {
  return sim::with_device(__func__, device, [&](const sim::DeviceCall& c) {
    return sim::give(architecture, c.device.spec().architecture);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetCudaComputeCapability(Device device, int* major,
                                                                int* minor) {
  return sim::with_device(__func__, device, [&](const sim::DeviceCall& c) {
    if (minor == nullptr) return Return::kInvalidArgument;
    *minor = c.device.spec().compute_capability[1];
    return sim::give(major, c.device.spec().compute_capability[0]);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetComputeMode(Device device, abi::ComputeMode* mode) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall&) {
    return sim::give(mode, abi::ComputeMode::kDefault);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetPersistenceMode(Device device, abi::EnableState* mode) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall&) {
    return sim::give(mode, abi::EnableState::kEnabled);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceSetPersistenceMode(Device device, abi::EnableState mode) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall&) {
    return mode == abi::EnableState::kEnabled ? Return::kSuccess : Return::kNoPermission;
  });
}

// Only a superchip has the link: elsewhere real drivers say not supported.
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetC2cModeInfoV(Device device, abi::C2cModeInfo* info) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    if (!c.device.spec().sensors.module_scope) return Return::kNotSupported;
    return sim::give(info, {1});
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetMigMode(Device device, unsigned* current,
                                                  unsigned* pending) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    // From Ampere's data-centre boards on.
    const auto& capability = c.device.spec().compute_capability;
    if (capability[0] < 8 || (capability[0] == 8 && capability[1] != 0)) {
      return Return::kNotSupported;
    }
    const unsigned mode = c.device.spec().mig.empty() ? abi::kMigDisabled : abi::kMigEnabled;
    if (pending == nullptr) return Return::kInvalidArgument;
    *pending = mode;
    return sim::give(current, mode);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* count) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    return sim::give(count, c.device.spec().mig.empty() ? 0 : 7);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index,
                                                                 Device* mig_device) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    if (index >= 7) return Return::kInvalidArgument;
    const Device mig = c.session.mig(c.device, index);
    return mig == nullptr ? Return::kNotFound : sim::give(mig_device, mig);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceIsMigDeviceHandle(Device device, unsigned* is_mig_device) {
  return sim::with_device(__func__, device, [&](const sim::DeviceCall& c) {
    return sim::give(is_mig_device, c.handle.mig != nullptr ? 1U : 0U);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device mig_device,
                                                                          Device* device) {
  return sim::with_device(__func__, mig_device, [&](const sim::DeviceCall& c) {
    if (c.handle.mig == nullptr) return Return::kInvalidArgument;
    return sim::give(device, c.session.gpu(c.device.index()));
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetGpuInstanceId(Device mig_device, unsigned* id) {
  return sim::with_device(__func__, mig_device, [&](const sim::DeviceCall& c) {
    if (c.handle.mig == nullptr) return Return::kNotSupported;
    return sim::give(id, c.handle.mig->gpu_instance_id);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetComputeInstanceId(Device mig_device, unsigned* id) {
  return sim::with_device(__func__, mig_device, [&](const sim::DeviceCall& c) {
    if (c.handle.mig == nullptr) return Return::kNotSupported;
    return sim::give(id, c.handle.mig->compute_instance_id);
  });
}

JOULEPROF_NVML_CHECK(DeviceGetCount);
JOULEPROF_NVML_CHECK(DeviceGetCount_v2);
JOULEPROF_NVML_CHECK(DeviceGetHandleByIndex);
JOULEPROF_NVML_CHECK(DeviceGetHandleByIndex_v2);
JOULEPROF_NVML_CHECK(DeviceGetHandleByUUID);
JOULEPROF_NVML_CHECK(DeviceGetHandleBySerial);
JOULEPROF_NVML_CHECK(DeviceGetHandleByPciBusId);
JOULEPROF_NVML_CHECK(DeviceGetHandleByPciBusId_v2);
JOULEPROF_NVML_CHECK(DeviceGetName);
JOULEPROF_NVML_CHECK(DeviceGetUUID);
JOULEPROF_NVML_CHECK(DeviceGetSerial);
JOULEPROF_NVML_CHECK(DeviceGetIndex);
JOULEPROF_NVML_CHECK(DeviceGetMinorNumber);
JOULEPROF_NVML_CHECK(DeviceGetPciInfo);
JOULEPROF_NVML_CHECK(DeviceGetPciInfo_v2);
JOULEPROF_NVML_CHECK(DeviceGetPciInfo_v3);
JOULEPROF_NVML_CHECK(DeviceGetBrand);
JOULEPROF_NVML_CHECK(DeviceGetArchitecture);
JOULEPROF_NVML_CHECK(DeviceGetCudaComputeCapability);
JOULEPROF_NVML_CHECK(DeviceGetComputeMode);
JOULEPROF_NVML_CHECK(DeviceGetPersistenceMode);
JOULEPROF_NVML_CHECK(DeviceSetPersistenceMode);
JOULEPROF_NVML_CHECK(DeviceGetC2cModeInfoV);
JOULEPROF_NVML_CHECK(DeviceGetMigMode);
JOULEPROF_NVML_CHECK(DeviceGetMaxMigDeviceCount);
JOULEPROF_NVML_CHECK(DeviceGetMigDeviceHandleByIndex);
JOULEPROF_NVML_CHECK(DeviceIsMigDeviceHandle);
JOULEPROF_NVML_CHECK(DeviceGetDeviceHandleFromMigDeviceHandle);
JOULEPROF_NVML_CHECK(DeviceGetGpuInstanceId);
JOULEPROF_NVML_CHECK(DeviceGetComputeInstanceId);
