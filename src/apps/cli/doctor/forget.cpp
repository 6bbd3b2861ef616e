#include "apps/cli/doctor/forget.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "apps/cli/kernel_memory.h"
#include "base/say.h"
#include "meters/nvml/calibration/calibration_file.h"
#include "meters/nvml/nvml_meter.h"

namespace jouleprof::cli {
namespace {

namespace nvml = meters::nvml;

Result<std::vector<std::string>> uuids_of(const std::vector<std::string>& devices) {
  meters::NvmlOptions options;
  if (const char* library = std::getenv("JOULEPROF_NVML_LIBRARY")) options.library = library;
  options.devices = devices;
  const auto meter = meters::NvmlMeter::open(options);
  if (!meter) return forward_error(meter);
  std::vector<std::string> uuids;
  for (const auto& gpu : (*meter)->gpus()) uuids.push_back(gpu.uuid);
  return uuids;
}

}  // namespace

Result<void> forget(const std::vector<std::string>& devices) {
  Result<std::size_t> forgotten;
  if (devices.empty()) {
    forgotten = nvml::forget_all_devices();
  } else {
    const auto uuids = uuids_of(devices);
    if (!uuids) return forward_error(uuids);
    forgotten = nvml::forget_devices(*uuids);
  }
  if (!forgotten) return forward_error(forgotten);
  say("jouleprof: removed what was stored of {} GPU(s) in {}\n", *forgotten,
      nvml::calibration_path().string());
  return {};
}

Result<void> forget_kernels() {
  const auto path = kernel_store_path();
  if (path.empty()) return {};
  if (auto done = recording::forget_kernels(path); !done) return done;
  say("jouleprof: removed the remembered kernels in {}\n", path.string());
  return {};
}

}  // namespace jouleprof::cli
