// The processes that use a device.
#include <cmath>

#include "nvml_sim/nvml/dispatch.h"

namespace jouleprof::nvml_sim {
namespace {

// `Info`: abi::ProcessInfo or abi::ProcessInfoV1.
template <typename Info>
Return give_running(const char* call, Device device, bool graphics, unsigned* count, Info* out) {
  return with_device(call, device, [&](const DeviceCall& c) {
    std::vector<Info> list;
    const auto& layout = c.spec.mig;
    for (const auto& process : c.device.processes(c.now)) {
      if (process.graphics != graphics) continue;
      const MigSpec* mig = layout.empty() ? nullptr : &layout[process.mig % layout.size()];
      if (c.handle.mig != nullptr && c.handle.mig != mig) continue;
      Info& info = list.emplace_back();
      info.pid = static_cast<unsigned>(process.pid);
      info.used_gpu_memory = process.memory_bytes;
      if constexpr (std::is_same_v<Info, abi::ProcessInfo>) {
        info.gpu_instance_id = mig != nullptr ? mig->gpu_instance_id : abi::kNotAvailable32;
        info.compute_instance_id = mig != nullptr ? mig->compute_instance_id : abi::kNotAvailable32;
      }
    }
    return give_list(list, count, out);
  });
}

}  // namespace

#define NVML_RUNNING(name, info, graphics)                                \
  NVML_FUNCTION(name, Device device, unsigned* count, abi::info* infos) { \
    return give_running(__func__, device, graphics, count, infos);        \
  }
NVML_RUNNING(DeviceGetComputeRunningProcesses, ProcessInfoV1, false)
NVML_RUNNING(DeviceGetComputeRunningProcesses_v2, ProcessInfo, false)
NVML_RUNNING(DeviceGetComputeRunningProcesses_v3, ProcessInfo, false)
NVML_RUNNING(DeviceGetGraphicsRunningProcesses, ProcessInfoV1, true)
NVML_RUNNING(DeviceGetGraphicsRunningProcesses_v2, ProcessInfo, true)
NVML_RUNNING(DeviceGetGraphicsRunningProcesses_v3, ProcessInfo, true)

// One sample of each process, stamped with the last whole sixth of a second.
NVML_FUNCTION(DeviceGetProcessUtilization, Device device, abi::ProcessUtilizationSample* samples,
              unsigned* count, unsigned long long last_seen) {
  return with_gpu(__func__, device, [&](const DeviceCall& c) {
    if (!c.spec.mig.empty()) return Return::kNotSupported;
    constexpr double kRefresh = 1.0 / 6;
    const double at = std::floor(c.now / kRefresh) * kRefresh;
    const auto stamp = static_cast<unsigned long long>(c.simulator().to_real_us(at));
    std::vector<abi::ProcessUtilizationSample> list;
    for (const auto& process : c.device.processes(c.now)) {
      if (stamp <= last_seen) break;
      abi::ProcessUtilizationSample& sample = list.emplace_back();
      sample.pid = static_cast<unsigned>(process.pid);
      sample.timestamp = stamp;
      sample.sm_util = c.shown(percent(process.utilisation));
      sample.mem_util = percent(process.utilisation / 2);
    }
    if (list.empty()) return Return::kNotFound;
    return give_list(list, count, samples);
  });
}

}  // namespace jouleprof::nvml_sim
