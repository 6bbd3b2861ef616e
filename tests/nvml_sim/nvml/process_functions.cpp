// The processes that use a device.
#include <algorithm>
#include <cmath>
#include <memory>

#include "nvml_sim/nvml/dispatch.h"

// What an opaque sample holds: how long an instance's multiprocessors had worked up to then.
struct jouleprof::abi::GpmSampleBuffer {
  double at = 0;
  double busy_seconds = 0;
  bool is_taken = false;
};

namespace jouleprof::nvml_sim {

NVML_FUNCTION(DeviceGetComputeRunningProcesses_v3, Device device, unsigned* count,
              abi::ProcessInfo* infos) {
  return with_device(__func__, device, [&](const DeviceCall& c) {
    std::vector<abi::ProcessInfo> list;
    const auto& layout = c.spec.mig;
    for (const auto& process : c.device.processes(c.now)) {
      const MigSpec* mig = layout.empty() ? nullptr : &layout[process.mig % layout.size()];
      if (c.handle.mig != nullptr && c.handle.mig != mig) continue;
      list.push_back({static_cast<unsigned>(process.pid), process.memory_bytes,
                      mig != nullptr ? mig->gpu_instance_id : abi::kNotAvailable32,
                      mig != nullptr ? 0 : abi::kNotAvailable32});
    }
    return give_list(list, count, infos);
  });
}

// All processes compute.
NVML_FUNCTION(DeviceGetGraphicsRunningProcesses_v3, Device device, unsigned* count,
              abi::ProcessInfo* infos) {
  return with_device(__func__, device, [&](const DeviceCall&) {
    return give_list(std::vector<abi::ProcessInfo>{}, count, infos);
  });
}

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
      sample.sm_util = percent(process.utilisation);
      sample.mem_util = percent(process.utilisation / 2);
    }
    if (list.empty()) return Return::kNotFound;
    return give_list(list, count, samples);
  });
}

// GPM, of MIG instances. The activity is the utilisation of its processes.
NVML_FUNCTION(GpmSampleAlloc, abi::GpmSample* sample) {
  return with_library(__func__, [&](const Session&) {
    return give(sample, std::make_unique<abi::GpmSampleBuffer>().release());
  });
}

NVML_FUNCTION(GpmSampleFree, abi::GpmSample sample) {
  return with_library(__func__, [&](const Session&) {
    const std::unique_ptr<abi::GpmSampleBuffer> owned(sample);
    return owned ? Return::kSuccess : Return::kInvalidArgument;
  });
}

NVML_FUNCTION(GpmMigSampleGet, Device device, unsigned gpu_instance_id, abi::GpmSample sample) {
  return with_gpu(__func__, device, [&](const DeviceCall& c) {
    if (sample == nullptr) return Return::kInvalidArgument;
    const auto instance = std::find_if(c.spec.mig.begin(), c.spec.mig.end(), [&](const auto& mig) {
      return mig.gpu_instance_id == gpu_instance_id;
    });
    if (instance == c.spec.mig.end()) return Return::kNotFound;
    *sample = {c.now,
               c.device.busy_seconds(static_cast<unsigned>(instance - c.spec.mig.begin()), c.now),
               true};
    return Return::kSuccess;
  });
}

NVML_FUNCTION(GpmMetricsGet, abi::GpmMetricsGet* metrics) {
  return with_library(__func__, [&](const Session&) {
    if (metrics == nullptr || metrics->version != abi::kGpmMetricsGetVersion) {
      return Return::kInvalidArgument;
    }
    const auto* first = metrics->sample1;
    const auto* second = metrics->sample2;
    if (first == nullptr || second == nullptr || !first->is_taken || second->at <= first->at) {
      return Return::kInvalidArgument;
    }
    for (unsigned i = 0; i < metrics->num_metrics; ++i) {
      auto& metric = metrics->metrics[i];
      metric.nvml_return =
          metric.metric_id == abi::kGpmMetricSmUtil ? Return::kSuccess : Return::kNotSupported;
      metric.value = 100 * (second->busy_seconds - first->busy_seconds) / (second->at - first->at);
    }
    return Return::kSuccess;
  });
}

}  // namespace jouleprof::nvml_sim
