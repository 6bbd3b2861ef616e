#include "meters/nvml/nvml_meter.h"

#include <fmt/format.h>

#include <array>

#include "meters/nvml/api/nvml_error.h"
#include "meters/nvml/nvml_meter_builder.h"

namespace jouleprof::meters {

using abi::Return;

NvmlMeter::NvmlMeter(nvml::NvmlApi api, const NvmlOptions& options)
    : api_(std::move(api)), clock_(nvml::NvmlClock::complete(options.clock)) {}

NvmlMeter::~NvmlMeter() { api_.shutdown(); }

Result<std::unique_ptr<NvmlMeter>> NvmlMeter::open(const NvmlOptions& options) {
  auto api = nvml::load_nvml(options.library);
  if (!api) return forward_error(api);
  return open(std::move(*api), options);
}

Result<std::unique_ptr<NvmlMeter>> NvmlMeter::open(nvml::NvmlApi api, const NvmlOptions& options) {
  const Return code = api.init();
  if (code != Return::kSuccess) {
    Error error = nvml::nvml_error(api, "nvmlInit", code);
    if (const auto fix = nvml::fix_for(code); !fix.empty()) error.message += ". Fix: " + fix;
    return tl::unexpected(std::move(error));
  }
  // From here on the destructor shuts NVML down.
  std::unique_ptr<NvmlMeter> meter(new NvmlMeter(std::move(api), options));
  auto gpus = nvml::list_gpus(meter->api_);
  if (!gpus) return forward_error(gpus);
  auto selected = nvml::select_gpus(std::move(*gpus), options.devices);
  if (!selected) return forward_error(selected);
  meter->gpus_ = std::move(*selected);
  std::array<char, abi::kSystemDriverVersionLength> version{};
  if (meter->api_.driver_version &&
      meter->api_.driver_version(version.data(), version.size() - 1) == Return::kSuccess) {
    meter->driver_version_ = version.data();
  }
  NvmlMeterBuilder builder(*meter, options);
  for (const auto& gpu : meter->gpus_) builder.add(gpu);
  return meter;
}

HostTime NvmlMeter::read(std::size_t index, model::Readings& out) {
  return readers_[index]->read(out);
}

void NvmlMeter::set_demand(const Demand& demand) {
  for (const auto& set_pace : paces_) set_pace(demand);
}

std::optional<Result<std::vector<model::GpuProcessUse>>> NvmlMeter::read_processes(
    model::Readings& out) {
  const ClockPoint now = clock_.now();
  std::vector<model::GpuProcessUse> uses;
  bool any_answer = false;
  auto failure = Return::kSuccess;
  for (auto& gpu : processes_) {
    const Return code = gpu.of_gpu.read(now, uses);
    if (const auto listed = gpu.of_gpu.listed(); gpu.count && listed) {
      out.gauges.push_back({*gpu.count, now.host, static_cast<double>(*listed)});
    }
    any_answer = any_answer || code == Return::kSuccess;
    if (code != Return::kSuccess && !nvml::is_unsupported(code)) failure = code;
  }
  if (any_answer) return uses;
  if (failure == Return::kSuccess) return std::nullopt;
  return tl::unexpected(nvml::nvml_error(api_, "nvmlDeviceGetComputeRunningProcesses", failure));
}

}  // namespace jouleprof::meters
