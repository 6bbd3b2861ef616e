#include "meters/nvml/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "meters/nvml/api/nvml_api.h"

namespace jouleprof::meters::nvml {

using abi::Device;
using abi::Return;

namespace {

using abi::Architecture;

using TextFunction = Return(Device device, char* text, unsigned length);

std::string text_of(TextFunction* function, Device device) {
  std::array<char, abi::kDeviceUuidV2Length> text{};
  if (!function) return {};
  if (function(device, text.data(), static_cast<unsigned>(text.size())) != Return::kSuccess) {
    return {};
  }
  text.back() = '\0';
  return text.data();
}

void find_mig_devices(const NvmlApi& api, Gpu& gpu) {
  unsigned current = 0;
  unsigned pending = 0;
  if (!api.mig_mode || api.mig_mode(gpu.handle, &current, &pending) != Return::kSuccess) return;
  gpu.mig_enabled = current == abi::kMigEnabled;
  unsigned most = 0;
  if (!gpu.mig_enabled || !api.max_mig_devices || !api.mig_device_by_index) return;
  if (api.max_mig_devices(gpu.handle, &most) != Return::kSuccess) return;
  for (unsigned i = 0; i < most; ++i) {
    Device handle = nullptr;
    if (api.mig_device_by_index(gpu.handle, i, &handle) != Return::kSuccess) continue;
    MigDevice mig{i, text_of(api.uuid, handle), text_of(api.name, handle), {}};
    unsigned instance = 0;
    if (api.gpu_instance_id && api.gpu_instance_id(handle, &instance) == Return::kSuccess) {
      mig.gpu_instance = instance;
    }
    gpu.mig_devices.push_back(std::move(mig));
  }
}

Gpu identify(const NvmlApi& api, unsigned index) {
  Gpu gpu;
  gpu.index = index;
  const Return code = api.device_by_index(index, &gpu.handle);
  if (code != Return::kSuccess) {
    gpu.error = nvml_error(api, fmt::format("nvmlDeviceGetHandleByIndex({})", index), code);
    gpu.fix = fix_for(code);
    return gpu;
  }
  gpu.name = text_of(api.name, gpu.handle);
  gpu.uuid = text_of(api.uuid, gpu.handle);
  auto architecture = abi::Architecture::kUnknown;
  if (api.architecture && api.architecture(gpu.handle, &architecture) == Return::kSuccess) {
    gpu.generation.architecture = architecture;
  }
  int major = 0;
  int minor = 0;
  if (api.compute_capability &&
      api.compute_capability(gpu.handle, &major, &minor) == Return::kSuccess) {
    gpu.generation.major = major;
    gpu.generation.minor = minor;
  }
  find_mig_devices(api, gpu);
  return gpu;
}

bool is_uuid(const std::string& wanted) {
  return wanted.starts_with("GPU-") || wanted.starts_with("MIG-");
}

// The first device without a handle, whose UUID is unknown therefore.
const Gpu* find_silent(const std::vector<Gpu>& gpus) {
  const auto silent =
      std::ranges::find_if(gpus, [](const Gpu& gpu) { return gpu.error.has_value(); });
  return silent == gpus.end() ? nullptr : &*silent;
}

bool is_named(const Gpu& gpu, const std::string& wanted) {
  if (const auto index = parse_integer(wanted)) return *index == gpu.index;
  if (!is_uuid(wanted)) return false;
  return gpu.uuid.starts_with(wanted) ||
         std::ranges::any_of(gpu.mig_devices,
                             [&](const MigDevice& m) { return m.uuid.starts_with(wanted); });
}

std::optional<model::GpuGeneration> generation_of(Architecture architecture) {
  using enum model::GpuGeneration;
  switch (architecture) {
    case Architecture::kPascal:
      return kPascal;
    case Architecture::kVolta:
      return kVolta;
    case Architecture::kTuring:
      return kTuring;
    case Architecture::kAmpere:
      return kAmpere;
    case Architecture::kAda:
      return kAda;
    case Architecture::kHopper:
      return kHopper;
    case Architecture::kBlackwell:
      return kBlackwell;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string Gpu::device() const { return fmt::format("gpu{}", index); }

Result<std::vector<Gpu>> list_gpus(const NvmlApi& api) {
  unsigned count = 0;
  const Return code = api.device_count(&count);
  if (code != Return::kSuccess) return tl::unexpected(nvml_error(api, "nvmlDeviceGetCount", code));
  if (count == 0) {
    return fail(Errc::kNotFound,
                fmt::format("NVML lists no GPU: {}", fix_for(Return::kGpuNotFound)));
  }
  std::vector<Gpu> gpus;
  for (unsigned i = 0; i < count; ++i) gpus.push_back(identify(api, i));
  return gpus;
}

Result<std::vector<Gpu>> select_gpus(std::vector<Gpu> gpus,
                                     const std::vector<std::string>& wanted) {
  if (wanted.empty()) return gpus;
  std::vector<bool> chosen(gpus.size(), false);
  for (const auto& name : wanted) {
    std::size_t matches = 0;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      if (!is_named(gpus[i], name)) continue;
      chosen[i] = true;
      ++matches;
    }
    if (matches == 1) continue;
    if (matches == 0 && is_uuid(name)) {
      if (const auto* silent = find_silent(gpus)) {
        return fail(Errc::kUnavailable,
                    fmt::format("'{}' is no GPU that answers, and may be {}: {}{}{}", name,
                                silent->device(), silent->error->message,
                                silent->fix.empty() ? "" : ": ", silent->fix));
      }
    }
    return fail(
        Errc::kInvalidArgument,
        fmt::format("'{}' matches {}: give an index from 0 to {}, or a UUID as nvidia-smi -L "
                    "lists them",
                    name, matches == 0 ? "no GPU" : "several GPUs", gpus.size() - 1));
  }
  std::vector<Gpu> selected;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (chosen[i]) selected.push_back(std::move(gpus[i]));
  }
  return selected;
}

GpuTraits default_traits(const Generation& generation, bool module) {
  return model::default_traits(generation_of(generation.architecture), module);
}

bool power_usage_is_instant(const Generation& generation) {
  if (generation.architecture == Architecture::kAmpere) {
    return generation.major == 8 && generation.minor == 0;  // GA100
  }
  return generation.architecture <= Architecture::kTuring;
}

model::SensorTraits overlay(model::SensorTraits base, const model::SensorTraits& calibrated) {
  if (calibrated.refresh) base.refresh = calibrated.refresh;
  if (calibrated.window) {  // of one fit
    base.window = calibrated.window;
    base.rise = calibrated.rise;
  } else if (calibrated.rise) {
    base.rise = calibrated.rise;
  }
  if (calibrated.lag) base.lag = calibrated.lag;
  if (calibrated.correction != 1) {
    base.correction = calibrated.correction;
    base.scale = calibrated.scale;
  }
  return base;
}

GpuTraits overlay(const GpuTraits& base, const GpuTraits& calibrated) {
  return {overlay(base.counter, calibrated.counter), overlay(base.ring, calibrated.ring),
          overlay(base.instant, calibrated.instant), overlay(base.average, calibrated.average)};
}

}  // namespace jouleprof::meters::nvml
