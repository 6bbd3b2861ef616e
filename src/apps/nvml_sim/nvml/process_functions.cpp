// Who uses a device.
#include <cmath>

#include "apps/nvml_sim/nvml/dispatch.h"

namespace sim = jouleprof::nvml_sim;
namespace abi = jouleprof::abi;
using abi::Device;
using abi::Return;

namespace {

std::vector<abi::ProcessInfo> running(const sim::DeviceCall& c, bool graphics) {
  std::vector<abi::ProcessInfo> infos;
  // With MIG, processes run in the first of its devices.
  const auto& layout = c.device.spec().mig;
  if (c.handle.mig != nullptr && c.handle.mig != &layout.front()) return infos;
  for (const auto& process : c.device.processes()) {
    if (process.graphics != graphics) continue;
    infos.push_back({static_cast<unsigned>(process.pid), process.memory_bytes,
                     layout.empty() ? abi::kNotAvailable32 : layout.front().gpu_instance_id,
                     layout.empty() ? abi::kNotAvailable32 : layout.front().compute_instance_id});
  }
  return infos;
}

Return give_running(const char* call, Device device, bool graphics, unsigned* count,
                    abi::ProcessInfo* infos) {
  return sim::with_device(call, device, [&](const sim::DeviceCall& c) {
    return sim::give_list(running(c, graphics), count, infos);
  });
}

Return give_running_v1(const char* call, Device device, bool graphics, unsigned* count,
                       abi::ProcessInfoV1* infos) {
  return sim::with_device(call, device, [&](const sim::DeviceCall& c) {
    std::vector<abi::ProcessInfoV1> list;
    for (const auto& info : running(c, graphics)) {
      list.push_back({info.pid, info.used_gpu_memory});
    }
    return sim::give_list(list, count, infos);
  });
}

}  // namespace

JOULEPROF_NVML_EXPORT Return nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count,
                                                                  abi::ProcessInfoV1* infos) {
  return give_running_v1(__func__, device, false, count, infos);
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned* count,
                                                                     abi::ProcessInfo* infos) {
  return give_running(__func__, device, false, count, infos);
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count,
                                                                     abi::ProcessInfo* infos) {
  return give_running(__func__, device, false, count, infos);
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetGraphicsRunningProcesses(Device device, unsigned* count,
                                                                   abi::ProcessInfoV1* infos) {
  return give_running_v1(__func__, device, true, count, infos);
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetGraphicsRunningProcesses_v2(Device device,
                                                                      unsigned* count,
                                                                      abi::ProcessInfo* infos) {
  return give_running(__func__, device, true, count, infos);
}
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device device,
                                                                      unsigned* count,
                                                                      abi::ProcessInfo* infos) {
  return give_running(__func__, device, true, count, infos);
}

// The last whole sixth of a second: one sample of each process that did something.
JOULEPROF_NVML_EXPORT Return nvmlDeviceGetProcessUtilization(Device device,
                                                             abi::ProcessUtilizationSample* samples,
                                                             unsigned* count,
                                                             unsigned long long last_seen) {
  return sim::with_gpu(__func__, device, [&](const sim::DeviceCall& c) {
    if (!c.device.spec().mig.empty()) return Return::kNotSupported;
    constexpr double kRefresh = 1.0 / 6;
    const double at = std::floor(c.now / kRefresh) * kRefresh;
    const auto stamp = static_cast<unsigned long long>(c.simulator().to_real_us(at));
    std::vector<abi::ProcessUtilizationSample> list;
    for (const auto& process : c.device.processes()) {
      if (stamp <= last_seen) break;
      abi::ProcessUtilizationSample sample{};
      sample.pid = static_cast<unsigned>(process.pid);
      sample.timestamp = stamp;
      sample.sm_util = c.shown(sim::percent(process.utilisation));
      sample.mem_util = sim::percent(process.utilisation / 2);
      list.push_back(sample);
    }
    if (list.empty()) return Return::kNotFound;
    return sim::give_list(list, count, samples);
  });
}

JOULEPROF_NVML_CHECK(DeviceGetComputeRunningProcesses);
JOULEPROF_NVML_CHECK(DeviceGetComputeRunningProcesses_v2);
JOULEPROF_NVML_CHECK(DeviceGetComputeRunningProcesses_v3);
JOULEPROF_NVML_CHECK(DeviceGetGraphicsRunningProcesses);
JOULEPROF_NVML_CHECK(DeviceGetGraphicsRunningProcesses_v2);
JOULEPROF_NVML_CHECK(DeviceGetGraphicsRunningProcesses_v3);
JOULEPROF_NVML_CHECK(DeviceGetProcessUtilization);
