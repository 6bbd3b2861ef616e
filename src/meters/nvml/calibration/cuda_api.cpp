#include "meters/nvml/calibration/cuda_api.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace jouleprof::meters::nvml {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

}  // namespace

Result<void> CudaApi::load() {
  auto found = DynLib::open(kLibrary);
  if (!found) {
    return fail(Errc::kNotFound,
                fmt::format("cannot put a load on the GPU: CUDA's driver library cannot be loaded "
                            "({}). Install the CUDA part of the NVIDIA driver (Debian: libcuda1). "
                            "In a container, use the NVIDIA container toolkit with "
                            "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                            found.error().message));
  }
  library = std::move(*found);
  const char* absent = nullptr;
  const auto need = [&](auto*& function_pointer, const char* name) {
    if (!library.bind(function_pointer, name)) absent = name;
  };
  need(init, "cuInit");
  need(error_string, "cuGetErrorString");
  need(device_count, "cuDeviceGetCount");
  need(device, "cuDeviceGet");
  need(attribute, "cuDeviceGetAttribute");
  need(retain, "cuDevicePrimaryCtxRetain");
  need(release, "cuDevicePrimaryCtxRelease_v2");
  need(set_current, "cuCtxSetCurrent");
  need(synchronize, "cuCtxSynchronize");
  need(load_module, "cuModuleLoadData");
  need(unload_module, "cuModuleUnload");
  need(function, "cuModuleGetFunction");
  need(allocate, "cuMemAlloc_v2");
  need(free, "cuMemFree_v2");
  need(launch, "cuLaunchKernel");
  // Drivers before CUDA 11.4 have the first form alone.
  if (!library.bind(uuid, "cuDeviceGetUuid_v2")) need(uuid, "cuDeviceGetUuid");
  if (absent == nullptr) return {};
  return fail(Errc::kUnsupported,
              fmt::format("{} has no function {}. Calibration needs an NVIDIA driver of CUDA 11 or "
                          "newer",
                          kLibrary, absent));
}

tl::unexpected<Error> CudaApi::failed(std::string_view call, cuda::Result code) const {
  const char* text = nullptr;
  if (error_string(code, &text) != cuda::kSuccess || text == nullptr) text = "unknown error";
  std::string message = fmt::format("{} failed: {} (CUDA error {})", call, text, code);
  if (code == cuda::kNoDevice) {
    message += ". CUDA finds no GPU; check CUDA_VISIBLE_DEVICES";
    return fail(Errc::kNotFound, std::move(message));
  }
  if (code == cuda::kOutOfMemory || code == cuda::kDeviceUnavailable) {
    message += ". End the other programs on the GPU and try again";
  }
  return fail(Errc::kUnavailable, std::move(message));
}

}  // namespace jouleprof::meters::nvml
