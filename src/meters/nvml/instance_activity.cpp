#include "meters/nvml/instance_activity.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace jouleprof::meters::nvml {

using abi::Return;

void InstanceActivity::clear() {
  for (auto& instance : instances_) free(instance);
  instances_.clear();
}

void InstanceActivity::free(Instance& instance) {
  for (abi::GpmSample* sample : {&instance.last, &instance.next}) {
    if (*sample) api_.gpm_free(std::exchange(*sample, nullptr));
  }
}

Return InstanceActivity::add(abi::Device board, unsigned gpu_instance) {
  if (!api_.gpm_alloc || !api_.gpm_free || !api_.gpm_instance_sample || !api_.gpm_metrics) {
    return Return::kFunctionNotFound;
  }
  Instance instance{board, gpu_instance, std::nullopt, nullptr, nullptr, false};
  Return code = api_.gpm_alloc(&instance.last);
  if (code == Return::kSuccess) code = api_.gpm_alloc(&instance.next);
  if (code == Return::kSuccess) {
    code = api_.gpm_instance_sample(board, gpu_instance, instance.last);
  }
  if (code != Return::kSuccess) {
    free(instance);
    return code;
  }
  instances_.push_back(instance);
  return code;
}

// The counters of an instance: how many of its multiprocessors had work, or else whether any had.
std::optional<double> InstanceActivity::mean_of(const Instance& instance) const {
  abi::GpmMetricsGet request{abi::kGpmMetricsGetVersion, 2, instance.last, instance.next, {}};
  request.metrics[0].metric_id = abi::kGpmMetricSmUtil;
  request.metrics[1].metric_id = abi::kGpmMetricGraphicsUtil;
  if (api_.gpm_metrics(&request) != Return::kSuccess) return std::nullopt;
  for (const auto& metric : request.metrics) {
    if (metric.nvml_return != Return::kSuccess || !std::isfinite(metric.value)) continue;
    // The counters' own rounding may pass 100 %; more than that is no activity.
    if (metric.value < 0 || metric.value > 101) return std::nullopt;
    return std::min(metric.value / 100, 1.0);
  }
  return std::nullopt;
}

void InstanceActivity::read(HostTime now, model::Readings& out) {
  for (auto& instance : instances_) {
    if (!instance.sensor) continue;
    if (api_.gpm_instance_sample(instance.board, instance.id, instance.next) != Return::kSuccess) {
      instance.has_last = false;
      continue;
    }
    // The sample of add() is older than the first list of processes.
    if (instance.has_last) {
      if (const auto mean = mean_of(instance)) out.gauges.push_back({*instance.sensor, now, *mean});
    }
    instance.has_last = true;
    std::swap(instance.last, instance.next);
  }
}

}  // namespace jouleprof::meters::nvml
